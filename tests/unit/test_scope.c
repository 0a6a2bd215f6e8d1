#include "base/scope.h"

#include "unit.h"

#include <stdlib.h>
#include <time.h>

static int in_the_program;

TEST(an_address_is_in_the_object_that_it_lies_in)
{
    struct scope_object program = scope_object_of(&in_the_program),
                        libc = scope_object_of(dlsym(RTLD_DEFAULT, "calloc"));
    CHECK(program.is_program);
    CHECK(scope_object_has(&program, &in_the_program));
    CHECK(scope_object_has(&program, (void *)an_address_is_in_the_object_that_it_lies_in));
    CHECK(!scope_object_has(&program, &program));
    CHECK(!libc.is_program || program.begin == libc.begin);
}

TEST(memory_is_in_no_object)
{
    void *memory = calloc(1, 1);
    struct scope_object none = scope_object_of(memory);
    CHECK(!scope_object_has(&none, memory));
    CHECK(!scope_object_has(&none, NULL));
    free(memory);
}

static void count_one(const char *name, void *count)
{
    *(int *)count += strcmp(name, "nanosleep") == 0;
}

TEST(functions_that_the_program_is_linked_with_are_visited)
{
    int count = 0;
    scope_imports(count_one, &count);
    CHECK(count > 0);
    CHECK(nanosleep(&(struct timespec){0, 1}, NULL) == 0); /* which is the reason */
}
