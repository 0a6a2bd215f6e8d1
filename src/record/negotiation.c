/* A thread has a list of negotiations, one for each communicator. Each knows of every word
 *
 *     given      what this rank gives in the round that it is in
 *     answer     what is agreed on in it
 *     pending    what it gave in the last round and was not agreed on
 *     agreed     what was agreed on in this step
 *     before     what was agreed on in the step before
 *
 * A step ends when all of the step before have been agreed on, so that what is summed between two
 * steps (an evaluation's metrics) is not of the first; or when a place is agreed on again. All
 * ranks see that in the same round. A rank may offer what is of the next step before that.
 *
 * By name a round is, on Horovod's ranks,
 *
 *     MPI_Gather of the lengths    negotiation_open       the round begins
 *     MPI_Gatherv of the requests  negotiation_request    what is new; at rank 0, of all others
 *     MPI_Bcast of a length
 *     MPI_Bcast of the responses   negotiation_answer     what is agreed on
 *
 * Each name has a place, in the order in which this process met them. A tensor is requested once,
 * so it is given from then on until it is agreed on. Rank 0 sends itself nothing: it has handed
 * over what is agreed on, and no later than that. If all others had requested all of that before
 * this round, then it was rank 0 that they waited for, and it did so since the last round. */
#include "negotiation.h"

#include "base/memory.h"
#include "base/quiet.h"
#include "ledger/thinned.h"
#include "memory_kind.h"
#include "mpi/datatypes.h"
#include "tensor_names.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NEGOTIATIONS_MOST = 64, /* of a process */
    WORD_BYTES = sizeof(uint64_t),
    COUNTS_MOST = UINT16_MAX, /* of a sample's numbers */
    STATUS = (1 << LEDGER_STATUS_PLACES) - 1,
    NAMES_MOST = 1 << 14, /* of a negotiation: beyond, no more rounds are read */
    NAME_SLOTS = 2 * NAMES_MOST,
    ANSWER_AFTER = 2,    /* collectives, the responses come after the requests */
    TOUCHES_MOST = 1024, /* of a process: beyond, a communicator's first list is not looked for */
    NO_HOW = ~0,         /* of rt_sigprocmask: none, so that the mask stays */
};

struct word {
    uint64_t given, answer, pending, agreed, before;
    uint64_t known; /* by name: what is given before the answer; at rank 0: by all others, before
                       this round */
    uint64_t some, all;           /* at rank 0: what some of the others give, and all of them */
    struct ledger_places *places; /* NULL: nothing was agreed on yet */
};

/* The places of names. */
struct names {
    uint64_t hashes[NAME_SLOTS]; /* 0: free */
    uint16_t places[NAME_SLOTS];
    uint16_t given_by[NAMES_MOST + LEDGER_STATUS_PLACES]; /* at rank 0: how many of the others */
    unsigned used, others;                                /* `others`: at rank 0; else 0 */
    bool is_full;
    uint64_t opened_ticks; /* begin of the round; 0: not seen */
    uint64_t
        requested; /* number of the collective that has had the requests; 0: none, or not read */
};

struct negotiation {
    struct negotiation *older; /* of the thread's */
    struct ledger_negotiation *entry;
    struct word *words;
    struct names *names; /* NULL: the places are those of the words that are reduced */
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
    bool is_open;             /* when some of these were handed over is not known */
};

mpi_handle negotiation_op;
bool negotiation_is_by_name;
static unsigned count, touched;

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

HOT struct negotiation *find(const struct thread *thread, uint32_t slot)
{
    struct negotiation *found = thread->negotiations;
    while (found && found->entry->communicator != slot)
        found = found->older;
    if (found && found->entry->epoch != thread->epoch)
        restart(found, thread->epoch);
    return found;
}

HOT struct negotiation *find_or_make(struct thread *thread, uint32_t slot)
{
    struct negotiation *found = find(thread, slot);
    if (!found && (found = make(thread, slot))) {
        found->older = thread->negotiations;
        thread->negotiations = found;
    }
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
    struct negotiation *found = find_or_make(call->thread, call->communicator->entry->communicator);
    unsigned used = is_doubled(given, (unsigned)words) ? (unsigned)words / 2 : (unsigned)words;
    if (!found || found->names || !make_room(found, used))
        return NULL;
    for (unsigned i = 0; i < used; i++)
        found->words[i].given = load_word(given, i);
    found->used = used;
    found->before_ticks = call->thread->cells.record->since_ticks;
    return found;
}

/* False: more came back than was given. */
HOT bool take_answer(struct negotiation *negotiation, const void *recvbuf)
{
    uint64_t more = 0;
    for (unsigned i = 0; i < negotiation->used; i++) {
        struct word *word = &negotiation->words[i];
        word->answer = load_word(recvbuf, i);
        more |= word->answer & ~word->given;
    }
    return !more;
}

/* `names`: or NULL. */
HOT struct round read_round(const struct negotiation *negotiation, const struct names *names)
{
    struct round round = {.offered = 0};
    bool is_at_root = names && names->others;
    for (unsigned i = 0; i < negotiation->used; i++) {
        const struct word *word = &negotiation->words[i];
        uint64_t given = tensors_of(word->given, i), agreed = tensors_of(word->answer, i);
        uint64_t added = is_at_root ? agreed : given & ~word->pending;
        round.offered += ones(given);
        round.agreed += ones(agreed);
        round.is_new |= added != 0;
        round.is_next |= (added & word->agreed) != 0;
        round.is_again |= (agreed & word->agreed) != 0;
        round.is_open |= names && agreed & ~word->known;
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

/* Between the begin of the last round and this one's; is_open: since the step before was done, or
 * since the last time that is known. */
static void hand_over(struct negotiation *negotiation, uint64_t entered_ticks, struct round round)
{
    bool is_of_next = round.is_next || negotiation->next.begin_ticks;
    struct ledger_negotiated_step *step = is_of_next ? &negotiation->next : &negotiation->step;
    if (!step->begin_ticks)
        step->begin_ticks = entered_ticks;
    if (!step->after_ticks)
        step->after_ticks =
            is_of_next && round.is_open ? negotiation->step.done_ticks : negotiation->before_ticks;
    if (!round.is_open)
        step->handed_after_ticks =
            negotiation->entered_ticks ? negotiation->entered_ticks : entered_ticks;
    else if (!step->handed_after_ticks)
        step->handed_after_ticks = step->after_ticks;
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
HOT void keep_words(struct negotiation *negotiation)
{
    uint64_t missing = 0, before = 0;
    for (unsigned i = 0; i < negotiation->room; i++) {
        struct word *word = &negotiation->words[i];
        uint64_t agreed = i < negotiation->used ? tensors_of(word->answer, i) : 0;
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

HOT void count_round(struct negotiation *negotiation, uint64_t start_ticks, uint64_t end_ticks,
                     struct round round, bool names_none)
{
    struct ledger_negotiation *entry = negotiation->entry;
    if (!entry->rounds)
        entry->first_ticks = start_ticks;
    entry->last_ticks = end_ticks;
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
    note_ahead(entry, round, end_ticks);
    __atomic_store_n(&entry->rounds, entry->rounds + 1, __ATOMIC_RELEASE);
}

/* `sample`: or NULL. */
HOT void mark_sample(struct ledger_sample *sample, const struct call *call, struct round round)
{
    if (!sample)
        return;
    sample_set_call(sample, (uint16_t)(call->id | LEDGER_SAMPLE_ROUND << 12));
    sample->offered = (uint16_t)(round.offered < COUNTS_MOST ? round.offered : COUNTS_MOST);
    sample->agreed = (uint16_t)(round.agreed < COUNTS_MOST ? round.agreed : COUNTS_MOST);
}

static void disbelieve(struct negotiation *negotiation)
{
    negotiation->entry->disbelieved++;
    forget_step(negotiation);
}

/* The list was read in part: nothing is known of what others have requested. */
static void disbelieve_names(struct negotiation *negotiation)
{
    struct names *names = negotiation->names;
    names->requested = names->opened_ticks = 0;
    memset(names->given_by, 0, sizeof names->given_by);
    for (unsigned i = 0; i < negotiation->room; i++)
        negotiation->words[i].some = negotiation->words[i].all = 0;
    disbelieve(negotiation);
}

/* The words have what was given, and the answer. `names`: or NULL. */
HOT struct round conclude(struct negotiation *negotiation, const struct names *names,
                          uint64_t start_ticks, uint64_t end_ticks, bool names_none)
{
    struct round round = read_round(negotiation, names);
    count_interval(negotiation, end_ticks);
    note_done(negotiation);
    round.is_next &= negotiation->step.tensors > 0; /* else that step has ended just now */
    round.is_again &= negotiation->step.tensors > 0;
    if (round.is_new)
        hand_over(negotiation, start_ticks, round);
    if (round.is_again)
        end_step(negotiation);
    count_round(negotiation, start_ticks, end_ticks, round, names_none);
    if (round.agreed) {
        negotiation->step.tensors += round.agreed;
        negotiation->step.agreed_ticks = end_ticks;
        negotiation->was_moving = true;
    }
    keep_words(negotiation);
    negotiation->entered_ticks = start_ticks;
    negotiation->returned_ticks = end_ticks;
    return round;
}

void negotiation_agree(struct negotiation *negotiation, const struct call *call,
                       const void *recvbuf, struct ledger_sample *sample)
{
    if (!call->succeeded)
        forget_step(negotiation);
    else if (!take_answer(negotiation, recvbuf))
        disbelieve(negotiation);
    else
        mark_sample(sample, call,
                    conclude(negotiation, NULL, call->start, call->end,
                             load_word(recvbuf, 0) & 1 << LEDGER_NAMED_PLACE));
}

/* The word of a name's place. NULL: there is no room for one more. */
static struct word *word_of(struct negotiation *negotiation, uint64_t hash, unsigned *place)
{
    struct names *names = negotiation->names;
    unsigned slot = (unsigned)(hash % NAME_SLOTS);
    hash += !hash;
    while (names->hashes[slot] && names->hashes[slot] != hash)
        slot = (slot + 1) % NAME_SLOTS;
    if (!names->hashes[slot]) {
        unsigned next = LEDGER_STATUS_PLACES + names->used;
        if (names->used == NAMES_MOST || !make_room(negotiation, next / LEDGER_WORD_PLACES + 1)) {
            names->is_full = true;
            negotiation->entry->ahead_since_ticks = 0; /* it would be so for ever */
            return NULL;
        }
        names->hashes[slot] = hash;
        names->places[slot] = (uint16_t)next;
        names->used++;
        negotiation->used = negotiation->room;
    }
    *place = names->places[slot];
    return &negotiation->words[*place / LEDGER_WORD_PLACES];
}

static uint64_t bit_of(unsigned place)
{
    return (uint64_t)1 << place % LEDGER_WORD_PLACES;
}

static void note_request(void *negotiation, uint64_t hash)
{
    unsigned place;
    struct word *word = negotiation ? word_of(negotiation, hash, &place) : NULL;
    if (!word)
        return;
    struct names *names = ((struct negotiation *)negotiation)->names;
    if (!names->others)
        word->given |= bit_of(place);
    else if (++names->given_by[place] < names->others)
        word->some |= bit_of(place);
    else
        word->all |= bit_of(place);
}

static void note_answer(void *negotiation, uint64_t hash)
{
    unsigned place;
    struct word *word = word_of(negotiation, hash, &place);
    if (!word)
        return;
    word->answer |= bit_of(place);
    ((struct negotiation *)negotiation)->names->given_by[place] = 0;
}

/* The kernel reads it for us, and reports memory that no CPU may read. GPUs' buffers look like host
 * memory under COMMPROF_GPU=off, and before the GPU's first use is noticed. */
static bool can_touch(const void *address)
{
    return syscall(SYS_rt_sigprocmask, NO_HOW, address, NULL, sizeof(uint64_t)) < 0 &&
           errno == EINVAL;
}

/* Once a negotiation is known, its lists are where lists were before. */
static bool may_read_list(const struct negotiation *negotiation, const char *list, mpi_count length)
{
    if (!tensor_names_may_be(length) || !may_read(list))
        return false;
    if (negotiation)
        return true;
    if (__atomic_fetch_add(&touched, 1, __ATOMIC_RELAXED) >= TOUCHES_MOST)
        return false;
    int saved = errno;
    bool can = can_touch(list) && can_touch(list + length - sizeof(uint64_t));
    errno = saved;
    return can;
}

static bool read_request(struct negotiation *negotiation, const char *list, mpi_count length)
{
    return may_read_list(negotiation, list, length) &&
           tensor_names_requested(list, (uint64_t)length, note_request, negotiation);
}

/* One list behind the other, in the order of ranks. */
static bool read_all_requests(struct negotiation *negotiation, const struct requests *requests,
                              int others)
{
    mpi_count at = 0;
    bool is_sound = requests->length == 0 && traffic_count_at(requests->lengths, 0) == 0;
    for (int i = 1; is_sound && i <= others; i++) {
        mpi_count length = traffic_count_at(requests->lengths, i);
        is_sound = traffic_count_at(requests->displacements, i) == at &&
                   read_request(negotiation, (const char *)requests->all + at, length);
        at += length;
    }
    return is_sound;
}

/* `negotiation`: or NULL, only to see whether they are requests. */
static bool read_requests(struct negotiation *negotiation, const struct requests *requests,
                          int others)
{
    return others ? !requests->own && read_all_requests(negotiation, requests, others)
                  : !requests->all && read_request(negotiation, requests->own, requests->length);
}

/* The one by names; NULL: there is none. */
static struct negotiation *find_by_name(const struct call *call)
{
    struct negotiation *found = call->thread && call->sequence && call_is_counted(call->id)
                                    ? find(call->thread, call->communicator->entry->communicator)
                                    : NULL;
    return found && found->names && !found->names->is_full ? found : NULL;
}

static struct negotiation *make_by_name(const struct call *call, int others)
{
    struct negotiation *made = find_or_make(call->thread, call->communicator->entry->communicator);
    if (!made || !(made->names = memory_take(sizeof *made->names)))
        return NULL;
    made->names->others = (unsigned)others;
    __atomic_store_n(&negotiation_is_by_name, true, __ATOMIC_RELAXED);
    return made;
}

void negotiation_open(const struct call *call)
{
    struct negotiation *negotiation = find_by_name(call);
    if (!negotiation)
        return;
    negotiation->before_ticks = call->thread->cells.record->since_ticks;
    negotiation->names->opened_ticks = clock_ticks();
}

/* Before the requests of a round are read. */
static void begin_round(struct negotiation *negotiation, const struct call *call)
{
    struct names *names = negotiation->names;
    if (!names->opened_ticks)
        names->opened_ticks = negotiation->before_ticks = call->start;
    names->requested = call->sequence;
    for (unsigned i = 0; i < negotiation->room; i++) {
        struct word *word = &negotiation->words[i];
        word->given = word->pending;
        word->known = word->all;
        word->answer = 0;
    }
}

/* After the requests, and after the answer, of a round have been read. */
static void settle(struct negotiation *negotiation)
{
    bool is_at_root = negotiation->names->others;
    for (unsigned i = 0; i < negotiation->room; i++) {
        struct word *word = &negotiation->words[i];
        word->all &= ~word->answer;
        word->some &= ~(word->answer | word->all);
        word->known = is_at_root ? word->known : word->given;
        word->given = word->answer | (is_at_root ? word->some : word->given);
    }
}

void negotiation_request(const struct call *call, const struct requests *requests)
{
    const struct communicator *communicator = call->communicator;
    bool may_be = call->succeeded && call->sequence && !communicator->is_inter &&
                  communicator->size > 1 && call_is_counted(call->id);
    if (!may_be)
        return;
    int others = communicator->comm_rank ? 0 : communicator->size - 1;
    struct negotiation *found = find(call->thread, communicator->entry->communicator);
    if (!found && read_requests(NULL, requests, others))
        found = make_by_name(call, others);
    if (!found || !found->names || found->names->is_full)
        return;
    begin_round(found, call);
    if (!read_requests(found, requests, others))
        disbelieve_names(found);
}

void negotiation_answer(const struct call *call, const void *buffer, mpi_count length,
                        struct ledger_sample *sample)
{
    struct negotiation *found = find_by_name(call);
    if (!found || !found->names->requested ||
        call->sequence != found->names->requested + ANSWER_AFTER)
        return;
    uint64_t opened_ticks = found->names->opened_ticks;
    found->names->opened_ticks = found->names->requested = 0;
    if (!call->succeeded || length <= 0 || !may_read(buffer) ||
        !tensor_names_answered(buffer, (uint64_t)length, note_answer, found)) {
        disbelieve_names(found);
        return;
    }
    settle(found);
    mark_sample(sample, call, conclude(found, found->names, opened_ticks, call->end, false));
}
