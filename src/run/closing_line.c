#include "closing_line.h"

#include "base/filesystems.h"
#include "base/host.h"
#include "base/say.h"
#include "mpi/launcher.h"
#include "presence.h"
#include "provenance.h"

#include <ctype.h>
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* lib/libcommprof.so and bin/hvprof-report are under the same folder, in the build tree and when
 * installed. */
static bool reporter_beside_us(char *path, size_t bytes)
{
    Dl_info us;
    char *library = dladdr((void *)reporter_beside_us, &us) && us.dli_fname
                        ? realpath(us.dli_fname, NULL)
                        : NULL;
    if (!library)
        return false;
    int length = snprintf(path, bytes, "%s/bin/hvprof-report", dirname(dirname(library)));
    free(library);
    return length < (int)bytes && access(path, X_OK) == 0;
}

/* The command for the reporter: its name if it is in PATH, else its path. */
static const char *reporter(void)
{
    static char path[PATH_MAX];
    const char *folders = getenv("PATH");
    for (size_t length; folders && *folders; folders += length + (folders[length] == ':')) {
        length = strcspn(folders, ":");
        snprintf(path, sizeof path, "%.*s/hvprof-report", (int)length, folders);
        if (access(path, X_OK) == 0)
            return "hvprof-report";
    }
    return reporter_beside_us(path, sizeof path) ? path : "hvprof-report";
}

/* A word for a shell: quoted where necessary, ANY_RANK as a star. */
static void shell_word(char *word, size_t bytes, const char *text)
{
    static const char APART[] = {ANY_RANK, '\'', '\0'}, PLAIN[] = "_-+=:,./%@";
    size_t used = 0;
    while (*text && used + 8 < bytes) {
        size_t length = strcspn(text, APART);
        bool is_plain = true;
        for (size_t i = 0; i < length; i++)
            is_plain = is_plain && (isalnum((unsigned char)text[i]) || text[i] & 0x80 ||
                                    strchr(PLAIN, text[i]));
        const char *quote = is_plain ? "" : "'";
        used += (size_t)snprintf(word + used, bytes - used, "%s%.*s%s", quote, (int)length, text,
                                 quote);
        text += length;
        if (*text && used + 3 < bytes)
            used +=
                (size_t)snprintf(word + used, bytes - used, "%s", *text++ == '\'' ? "\\'" : "*");
    }
    word[used < bytes ? used : bytes - 1] = '\0';
}

/* The folders of all ranks as one pattern with ANY_RANK where they differ; those of all programs,
 * if there are several. */
static void folders_of_all(const struct run_folder *folder, int world_size, bool of_programs,
                           char *folders, size_t bytes)
{
    size_t used = 0;
    bool is_one_host = launcher_is_on_one_host(world_size), is_split = false;
    folders[0] = '\0';
    for (const char *at = folder->of_all; world_size > 1 && *at && used + 1 < bytes; at++) {
        char same[] = {*at, '\0'};
        const char *piece = *at == ANY_HOST && is_one_host       ? host_name()
                            : *at == ANY_PROGRAM && !of_programs ? provenance_program()
                                                                 : same;
        if (piece == same && (*at == ANY_HOST || *at == ANY_PROGRAM))
            same[0] = ANY_RANK;
        is_split |= *piece == ANY_RANK;
        used += (size_t)snprintf(folders + used, bytes - used, "%s", piece);
    }
    if (!is_split)
        snprintf(folders, bytes, "%s", folder->path);
}

/* If ranks are missing, they may be of another program, whose folder has another name. */
static enum presence find_presence(const struct run_folder *folder, int world_size,
                                   bool (*is_expected)(int rank), char *folders, size_t bytes,
                                   struct presence_text *text, int *error)
{
    static char wider[PATH_MAX];
    struct presence_text more;
    enum presence presence = presence_find(folders, world_size, is_expected, text, error);
    folders_of_all(folder, world_size, true, wider, sizeof wider);
    if (presence == PRESENCE_ALL || strcmp(wider, folders) == 0)
        return presence;
    enum presence of_programs = presence_find(wider, world_size, is_expected, &more, error);
    if (of_programs == PRESENCE_NONE || strcmp(more.ranks, text->ranks) == 0)
        return presence;
    snprintf(folders, bytes, "%s", wider);
    *text = more;
    return of_programs;
}

void closing_line_say(struct run_folder *folder, int world_size, const char *ranks,
                      bool (*is_expected)(int rank))
{
    static char folders[PATH_MAX], quoted[2 * PATH_MAX], command[2 * PATH_MAX],
        remark[PATH_MAX + 64];
    static struct presence_text present;
    int reason = run_folder_find(folder);
    folders_of_all(folder, world_size, false, folders, sizeof folders);
    enum presence presence = reason ? PRESENCE_NONE
                                    : find_presence(folder, world_size, is_expected, folders,
                                                    sizeof folders, &present, &reason);
    bool is_split = strchr(folders, ANY_RANK);
    shell_word(quoted, sizeof quoted, folders);
    shell_word(command, sizeof command, reporter());
    if (run_folder_is_hidden(folder, reason))
        snprintf(remark, sizeof remark, ", which this process can no longer see (%s)",
                 filesystems_reason(reason));
    else if (presence == PRESENCE_NONE) {
        say_line("no profile of %s is in %s: %s", ranks, is_split ? quoted : folders,
                 reason ? filesystems_reason(reason) : present.ranks);
        return;
    } else if (*folder->was)
        snprintf(remark, sizeof remark, " (renamed from %s)", folder->was);
    else
        *remark = '\0';
    say_line("profile of %s in %s%s%s; read it with: %s summary %s",
             presence == PRESENCE_SOME ? present.ranks : ranks, is_split ? quoted : folders, remark,
             present.on_nodes, command, quoted);
}

static bool is_any_rank(int rank)
{
    return rank >= 0;
}

/* The rank before this one answers nearly always. */
bool closing_line_is_ours(const struct run_folder *folder, int world_rank)
{
    static char folders[PATH_MAX];
    static struct presence_text present;
    int error = 0;
    if (run_folder_has(folder, world_rank - 1) || !run_folder_has(folder, world_rank) ||
        *folder->archive)
        return false;
    folders_of_all(folder, world_rank + 1, true, folders, sizeof folders);
    bool is_apart = strchr(folder->of_all, ANY_RANK) || strchr(folder->of_all, ANY_HOST);
    return !is_apart &&
           presence_find(folders, world_rank, is_any_rank, &present, &error) == PRESENCE_NONE &&
           !error;
}
