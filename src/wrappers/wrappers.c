/* The wrappers that follow a pattern: one expansion for each line of calls.def. `make
 * show-wrappers` prints them as plain C.
 *
 * Each wrapper announces its call, reads the clock directly before and directly after the real
 * call, and only then determines the call's traffic. */
#include "functions.h"
#include "record/account.h"
#include "record/announce.h"
#include "record/signatures.h"

#define BLOCKING(NAME, SHAPE, FORMS) \
    BODY(NAME, BLOCKING, SHAPE) CALLED(NAME, SHAPE, , ) EXPORT_##FORMS(NAME, BLOCKING, SHAPE)

#define POLLING(NAME, SHAPE, FORMS)                      \
    BODY(NAME, POLLING, SHAPE)                           \
    {                                                    \
        struct call call UNTIL_RETURN;                   \
        call_enter(&call, CALL_##NAME, site);            \
        if (__builtin_expect(!call.thread, 0))           \
            return real(ARGUMENTS_##SHAPE);              \
        ANNOUNCE_##SHAPE;                                \
        call_start(&call);                               \
        int error = real(ARGUMENTS_##SHAPE);             \
        call_stop(&call, error);                         \
        bool nothing = call.succeeded && !FOUND_##SHAPE; \
        call_leave(&call, !nothing);                     \
        if (nothing)                                     \
            account_poll(&call);                         \
        else                                             \
            account_call(&call, TRAFFIC_##SHAPE);        \
        return error;                                    \
    }                                                    \
    EXPORT_##FORMS(NAME, POLLING, SHAPE)

#define RETURNING_A_REQUEST(NAME, SHAPE, FORMS, LIKE, ACCOUNT, FLAGS)            \
    BODY(NAME, LIKE, SHAPE)                                                      \
    {                                                                            \
        struct call call UNTIL_RETURN;                                           \
        call_enter(&call, CALL_##NAME, site);                                    \
        if (__builtin_expect(!call.thread, 0))                                   \
            return real(ARGUMENTS_OF_##LIKE(SHAPE));                             \
        ANNOUNCE_##SHAPE;                                                        \
        call_start(&call);                                                       \
        int error = real(ARGUMENTS_OF_##LIKE(SHAPE));                            \
        call_end(&call, error);                                                  \
        struct traffic traffic = TRAFFIC_##SHAPE;                                \
        struct ledger_sample *sample = ACCOUNT(&call, &traffic, request, FLAGS); \
        STORE_SIGNATURE(SHAPE);                                                  \
        return error;                                                            \
    }                                                                            \
    EXPORT_##FORMS(NAME, LIKE, SHAPE)

#define STARTING(NAME, SHAPE, FORMS) \
    RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, account_started, 0)
#define STARTING_RECEIVE(NAME, SHAPE, FORMS) \
    RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, account_started, REQUEST_RECEIVE)
#define STARTING_EXCHANGE(NAME, SHAPE, FORMS) \
    RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, ACCOUNT_EXCHANGE, REQUEST_EXCHANGE)
#define ACCOUNT_EXCHANGE(CALL, TRAFFIC, REQUEST, FLAGS) \
    account_exchange_started(CALL, TRAFFIC, source, recvtag, REQUEST)
#define PREPARING(NAME, SHAPE, FORMS) \
    RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, account_prepared, 0)
#define PREPARING_RECEIVE(NAME, SHAPE, FORMS) \
    RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, account_prepared, REQUEST_RECEIVE)
#define PREPARING_WITH_INFO(NAME, SHAPE, FORMS) \
    RETURNING_A_REQUEST(NAME, SHAPE, FORMS, PREPARING_WITH_INFO, account_prepared, 0)

#define MAKING(NAME, SHAPE, FORMS)                        \
    BODY(NAME, MAKING, SHAPE)                             \
    {                                                     \
        struct call call UNTIL_RETURN;                    \
        call_enter(&call, CALL_##NAME, site);             \
        ANNOUNCE_##SHAPE;                                 \
        call_start(&call);                                \
        int error = real(ARGUMENTS_##SHAPE);              \
        call_end(&call, error);                           \
        account_created(&call, newcomm, CREATED_##SHAPE); \
        return error;                                     \
    }                                                     \
    EXPORT_##FORMS(NAME, MAKING, SHAPE)

#include "expand.h"
