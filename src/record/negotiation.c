/* A thread has a list of negotiations, one for each communicator. Each knows of every word
 *
 *     given      what this rank gives in the round that it is in
 *     pending    what it gave in the last round and was not agreed on
 *     agreed     what was agreed on in this step
 *     before     what was agreed on in the step before
 *
 * A step ends when all of the step before have been agreed on, so that what is summed between two
 * steps (an evaluation's metrics) is not of the first; or when a place is agreed on again. All
 * ranks see that in the same round. A rank may offer what is of the next step before that. */
#include "negotiation.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "ledger/thinned.h"
#include "memory_kind.h"
#include "mpi/datatypes.h"

enum {
    NEGOTIATIONS_MOST = 64, /* of a process */
    WORD_BYTES = sizeof(uint64_t),
    COUNTS_MOST = UINT16_MAX, /* of a sample's numbers */
    STATUS = (1 << LEDGER_STATUS_PLACES) - 1,
};

struct word {
    uint64_t given, pending, agreed, before;
    struct ledger_places *places; /* NULL: nothing was agreed on yet */
};

struct negotiation {
    struct negotiation *older; /* of the thread's */
    struct ledger_negotiation *entry;
    struct word *words;
    unsigned room, used; /* of `words`: those that exist, and those of this round */
    int64_t counting_since_ns;
    uint64_t before_ticks; /* end of the thread's last call before this round */
    /* of the last round; 0: none, or calls were not counted in between */
    uint64_t entered_ticks, returned_ticks;
    bool was_moving;                          /* it agreed on some tensors, so data may follow */
    struct ledger_negotiated_step step, next; /* begin_ticks 0: nothing of it was offered yet */
    bool is_complete;                         /* the step has ended, but not its last sums */
    struct thinned log;
};

/* A round's answer. */
struct round {
    unsigned offered, agreed; /* tensors */
    bool is_new;              /* offered some that were not pending */
    bool is_next;             /* some of these were agreed on in this step */
    bool is_again;            /* agreed on some that were agreed on in this step */
};

mpi_handle negotiation_op;
static unsigned count;

void negotiation_begin(void)
{
    negotiation_op = mpi_op_named("MPI_BAND");
}

static unsigned ones(uint64_t word)
{
    return word ? (unsigned)__builtin_popcountll(word) : 0;
}

static uint64_t load_word(const void *buffer, unsigned index)
{
    uint64_t word;
    memcpy(&word, (const char *)buffer + index * WORD_BYTES, sizeof word);
    return word;
}

/* The words' tensors: the first word without its status bits. */
static uint64_t tensors_of(uint64_t word, unsigned index)
{
    return index ? word : word & ~(uint64_t)STATUS;
}

static struct negotiation *make(const struct thread *thread, uint32_t slot)
{
    struct ledger_negotiation empty = {
        .thread = thread->cells.record->thread, .communicator = slot, .epoch = thread->epoch};
    if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) > NEGOTIATIONS_MOST)
        return NULL;
    struct negotiation *made = memory_take(sizeof *made);
    struct ledger_negotiation *entry =
        made ? ledger_append(LEDGER_NEGOTIATIONS, &empty, sizeof empty) : NULL;
    if (!entry) {
        memory_give(made);
        return NULL;
    }
    made->entry = entry;
    thinned_begin(&made->log, LEDGER_NEGOTIATED_STEPS, THINNED_MOST);
    return made;
}

/* The step in progress is not counted: rounds are missing in it. */
static void forget_step(struct negotiation *negotiation)
{
    for (unsigned i = 0; i < negotiation->room; i++)
        negotiation->words[i].pending = negotiation->words[i].agreed =
            negotiation->words[i].before = 0;
    negotiation->step = (struct ledger_negotiated_step){.step = negotiation->step.step};
    negotiation->next.begin_ticks = 0;
    negotiation->entered_ticks = negotiation->returned_ticks = 0;
    negotiation->was_moving = negotiation->is_complete = false;
}

/* Begins at zero after a reset: the epoch is stored last. */
static void restart(struct negotiation *negotiation, uint32_t epoch)
{
    struct ledger_negotiation *entry = negotiation->entry;
    forget_step(negotiation);
    for (unsigned i = 0; i < negotiation->room; i++) {
        struct ledger_places *places = negotiation->words[i].places;
        if (!places)
            continue;
        memset(places->agreed, 0, sizeof places->agreed);
        __atomic_store_n(&places->epoch, epoch, __ATOMIC_RELEASE);
    }
    memset(entry, 0, offsetof(struct ledger_negotiation, thread));
    __atomic_store_n(&entry->epoch, epoch, __ATOMIC_RELEASE);
}

static struct negotiation *find(struct thread *thread, uint32_t slot)
{
    struct negotiation *found = thread->negotiations;
    while (found && found->entry->communicator != slot)
        found = found->older;
    if (!found && (found = make(thread, slot))) {
        found->older = thread->negotiations;
        thread->negotiations = found;
    }
    if (found && found->entry->epoch != thread->epoch)
        restart(found, thread->epoch);
    return found;
}

static bool make_room(struct negotiation *negotiation, unsigned words)
{
    if (words <= negotiation->room)
        return true;
    struct quiet before = quiet_begin();
    struct word *larger = memory_resize(negotiation->words, words * sizeof *larger);
    if (larger)
        negotiation->words = larger;
    quiet_end(&before);
    if (!larger)
        return false;
    memset(larger + negotiation->room, 0, (words - negotiation->room) * sizeof *larger);
    negotiation->room = words;
    return true;
}

/* With HOROVOD_TIMELINE a second half follows, of the first half's complement: of each place that
 * some rank gives it says so. */
static bool is_doubled(const void *buffer, unsigned words)
{
    unsigned half = words / 2;
    for (unsigned i = 0; i < half; i++)
        if (load_word(buffer, half + i) != ~tensors_of(load_word(buffer, i), i))
            return false;
    return words % 2 == 0;
}

static bool is_on_host(const void *buffer)
{
    unsigned kind = __atomic_load_n(&memory_kind_ask, __ATOMIC_RELAXED) ? memory_kind_find(buffer)
                                                                        : LEDGER_HOST;
    return kind == LEDGER_HOST || kind == LEDGER_PINNED;
}

/* A buffer that is no memory is for MPI to report. */
static bool may_read(const void *buffer)
{
    return buffer && buffer != mpi_abi.in_place && is_on_host(buffer);
}

struct negotiation *negotiation_offer(const struct call *call, const void *sendbuf,
                                      const void *recvbuf, mpi_count words)
{
    const void *given = sendbuf == mpi_abi.in_place ? recvbuf : sendbuf;
    bool is_round = call->sequence && !call->communicator->is_inter && call_is_counted(call->id) &&
                    words > 0 && words <= LEDGER_WORDS_MOST &&
                    call->bytes == (uint64_t)words * WORD_BYTES;
    if (!is_round || !may_read(given) || !may_read(recvbuf))
        return NULL;
    struct negotiation *found = find(call->thread, call->communicator->entry->communicator);
    unsigned used = is_doubled(given, (unsigned)words) ? (unsigned)words / 2 : (unsigned)words;
    if (!found || !make_room(found, used))
        return NULL;
    for (unsigned i = 0; i < used; i++)
        found->words[i].given = load_word(given, i);
    found->used = used;
    found->before_ticks = call->thread->cells.record->since_ticks;
    return found;
}

/* False: more came back than was given. */
static bool is_believed(const struct negotiation *negotiation, const void *recvbuf)
{
    uint64_t more = 0;
    for (unsigned i = 0; i < negotiation->used; i++)
        more |= load_word(recvbuf, i) & ~negotiation->words[i].given;
    return !more;
}

static struct round read_round(const struct negotiation *negotiation, const void *recvbuf)
{
    struct round round = {.offered = 0};
    for (unsigned i = 0; i < negotiation->used; i++) {
        const struct word *word = &negotiation->words[i];
        uint64_t given = tensors_of(word->given, i), added = given & ~word->pending;
        uint64_t agreed = tensors_of(load_word(recvbuf, i), i);
        round.offered += ones(given);
        round.agreed += ones(agreed);
        round.is_new |= added != 0;
        round.is_next |= (added & word->agreed) != 0;
        round.is_again |= (agreed & word->agreed) != 0;
    }
    return round;
}

/* The time since the last round, by what that has said. */
static void count_interval(struct negotiation *negotiation, uint64_t end_ticks)
{
    struct ledger_negotiation *entry = negotiation->entry;
    int64_t since_ns = __atomic_load_n(&the_ledger.header->counting_since_ns, __ATOMIC_RELAXED);
    bool is_whole = negotiation->returned_ticks && negotiation->counting_since_ns == since_ns;
    negotiation->counting_since_ns = since_ns;
    if (!is_whole) {
        forget_step(negotiation);
        return;
    }
    uint64_t ns = clock_duration_ns(end_ticks - negotiation->returned_ticks);
    bool is_ahead = entry->last_offered > entry->last_agreed;
    entry->ahead_ns += is_ahead ? ns : 0;
    entry->ahead_moving_ns += is_ahead && entry->last_agreed ? ns : 0;
    entry->idle_ns += entry->last_offered ? 0 : ns;
}

static void end_step(struct negotiation *negotiation)
{
    struct ledger_negotiation *entry = negotiation->entry;
    struct ledger_negotiated_step *step = &negotiation->step;
    if (step->handed_ticks > step->agreed_ticks) /* of a tensor that was taken back */
        step->handed_ticks = step->agreed_ticks;
    if (step->handed_after_ticks > step->handed_ticks)
        step->handed_after_ticks = step->handed_ticks;
    entry->others_ns += clock_duration_ns(step->agreed_ticks - step->handed_ticks);
    entry->exposed_ns += clock_duration_ns(step->done_ticks - step->handed_ticks);
    entry->uncertain_ns += clock_duration_ns(step->handed_ticks - step->handed_after_ticks);
    entry->steps++;
    step->step++;
    step->thread = (uint16_t)entry->thread;
    step->communicator = (uint16_t)entry->communicator;
    if (thinned_wants(&negotiation->log, step->step))
        thinned_add(&negotiation->log, step);
    for (unsigned i = 0; i < negotiation->room; i++) {
        negotiation->words[i].before = negotiation->words[i].agreed;
        negotiation->words[i].agreed = 0;
    }
    negotiation->next.step = step->step;
    negotiation->next.after_ticks = step->done_ticks;
    *step = negotiation->next;
    negotiation->next = (struct ledger_negotiated_step){.begin_ticks = 0};
    negotiation->is_complete = false;
}

/* After the last round that agreed on something: when the data had been summed. */
static void note_done(struct negotiation *negotiation)
{
    struct ledger_negotiated_step *step = &negotiation->step;
    if (!negotiation->was_moving)
        return;
    negotiation->was_moving = false;
    step->done_ticks = negotiation->before_ticks > step->agreed_ticks ? negotiation->before_ticks
                                                                      : step->agreed_ticks;
    if (negotiation->is_complete)
        end_step(negotiation);
}

static void hand_over(struct negotiation *negotiation, uint64_t entered_ticks, bool is_next)
{
    struct ledger_negotiated_step *step =
        is_next || negotiation->next.begin_ticks ? &negotiation->next : &negotiation->step;
    if (!step->begin_ticks)
        step->begin_ticks = entered_ticks;
    if (!step->after_ticks)
        step->after_ticks = negotiation->before_ticks;
    step->handed_after_ticks =
        negotiation->entered_ticks ? negotiation->entered_ticks : entered_ticks;
    step->handed_ticks = entered_ticks;
}

/* Room for the counts of a word; NULL: the ledger has none. */
static struct ledger_places *places_of(const struct negotiation *negotiation, unsigned index)
{
    const struct ledger_negotiation *entry = negotiation->entry;
    struct ledger_places empty = {.thread = entry->thread,
                                  .communicator = entry->communicator,
                                  .word = index,
                                  .epoch = entry->epoch};
    struct word *word = &negotiation->words[index];
    if (!word->places)
        word->places = ledger_append(LEDGER_PLACES, &empty, sizeof empty);
    return word->places;
}

static void count_places(const struct negotiation *negotiation, unsigned index, uint64_t agreed)
{
    struct ledger_places *places = places_of(negotiation, index);
    for (; places && agreed; agreed &= agreed - 1)
        places->agreed[__builtin_ctzll(agreed)]++;
}

/* Keeps what is pending now, and what has been agreed on. */
static void keep_words(struct negotiation *negotiation, const void *recvbuf)
{
    uint64_t missing = 0, before = 0;
    for (unsigned i = 0; i < negotiation->room; i++) {
        struct word *word = &negotiation->words[i];
        uint64_t agreed = i < negotiation->used ? tensors_of(load_word(recvbuf, i), i) : 0;
        uint64_t given = i < negotiation->used ? tensors_of(word->given, i) : 0;
        word->pending = given & ~agreed;
        word->agreed |= agreed;
        before |= word->before;
        missing |= word->before & ~word->agreed;
        if (agreed)
            count_places(negotiation, i, agreed);
    }
    negotiation->is_complete = before && !missing;
}

/* Tensors that were taken back without being agreed on go by name: others are waited for still. */
static void note_ahead(struct ledger_negotiation *entry, struct round round, uint64_t end_ticks)
{
    if (round.offered == round.agreed && round.offered)
        entry->ahead_since_ticks = 0;
    else if (round.offered && !entry->ahead_since_ticks)
        entry->ahead_since_ticks = end_ticks;
}

static void count_round(struct negotiation *negotiation, const struct call *call,
                        struct round round, bool names_none)
{
    struct ledger_negotiation *entry = negotiation->entry;
    if (!entry->rounds)
        entry->first_ticks = call->start;
    entry->last_ticks = call->end;
    entry->rounds_ahead += round.offered > round.agreed;
    entry->rounds_idle += !round.offered;
    entry->rounds_by_name += !names_none;
    entry->agreed += round.agreed;
    entry->last_offered = round.offered;
    entry->last_agreed = round.agreed;
    if (entry->offered_most < round.offered)
        entry->offered_most = round.offered;
    if (entry->words_most < negotiation->used)
        entry->words_most = negotiation->used;
    note_ahead(entry, round, call->end);
    __atomic_store_n(&entry->rounds, entry->rounds + 1, __ATOMIC_RELEASE);
}

static void mark_sample(struct ledger_sample *sample, const struct call *call, struct round round)
{
    sample_set_call(sample, (uint16_t)(call->id | LEDGER_SAMPLE_ROUND << 12));
    sample->offered = (uint16_t)(round.offered < COUNTS_MOST ? round.offered : COUNTS_MOST);
    sample->agreed = (uint16_t)(round.agreed < COUNTS_MOST ? round.agreed : COUNTS_MOST);
}

void negotiation_agree(struct negotiation *negotiation, const struct call *call,
                       const void *recvbuf, struct ledger_sample *sample)
{
    if (!call->succeeded || !is_believed(negotiation, recvbuf)) {
        negotiation->entry->disbelieved += call->succeeded;
        forget_step(negotiation);
        return;
    }
    struct round round = read_round(negotiation, recvbuf);
    count_interval(negotiation, call->end);
    note_done(negotiation);
    round.is_next &= negotiation->step.tensors > 0; /* else that step has ended just now */
    round.is_again &= negotiation->step.tensors > 0;
    if (round.is_new)
        hand_over(negotiation, call->start, round.is_next);
    if (round.is_again)
        end_step(negotiation);
    count_round(negotiation, call, round, load_word(recvbuf, 0) & 1 << LEDGER_NAMED_PLACE);
    if (round.agreed) {
        negotiation->step.tensors += round.agreed;
        negotiation->step.agreed_ticks = call->end;
        negotiation->was_moving = true;
    }
    keep_words(negotiation, recvbuf);
    if (sample)
        mark_sample(sample, call, round);
    negotiation->entered_ticks = call->start;
    negotiation->returned_ticks = call->end;
}
