/* The wrappers that follow a pattern: one expansion for each line of calls.def. `make show-wrappers` prints them as plain C.
 *
 * Each announces what it is about to do, reads the clock directly before and directly after the real call, and only then asks what the
 * call has moved. */
#include "announce.h"
#include "functions.h"

#define BLOCKING(NAME, SHAPE, FORMS)          \
    BODY(NAME, BLOCKING, SHAPE)               \
    {                                         \
        struct call call;                     \
        call_enter(&call, CALL_##NAME, site); \
        ANNOUNCE_##SHAPE;                     \
        call_start(&call);                    \
        int error = real(ARGUMENTS_##SHAPE);  \
        call_end(&call, error);               \
        call_account(&call, TRAFFIC_##SHAPE); \
        return error;                         \
    }                                         \
    EXPORT_##FORMS(NAME, BLOCKING, SHAPE)

#define POLLING(NAME, SHAPE, FORMS)                      \
    BODY(NAME, POLLING, SHAPE)                           \
    {                                                    \
        struct call call;                                \
        call_enter(&call, CALL_##NAME, site);            \
        ANNOUNCE_##SHAPE;                                \
        call_start(&call);                               \
        int error = real(ARGUMENTS_##SHAPE);             \
        call_stop(&call, error);                         \
        bool nothing = call.succeeded && !FOUND_##SHAPE; \
        call_leave(&call, !nothing);                     \
        if (nothing)                                     \
            call_account_poll(&call);                    \
        else                                             \
            call_account(&call, TRAFFIC_##SHAPE);        \
        return error;                                    \
    }                                                    \
    EXPORT_##FORMS(NAME, POLLING, SHAPE)

#define RETURNING_A_REQUEST(NAME, SHAPE, FORMS, LIKE, ACCOUNT, FLAGS) \
    BODY(NAME, LIKE, SHAPE)                                           \
    {                                                                 \
        struct call call;                                             \
        call_enter(&call, CALL_##NAME, site);                         \
        ANNOUNCE_##SHAPE;                                             \
        call_start(&call);                                            \
        int error = real(ARGUMENTS_OF_##LIKE(SHAPE));                 \
        call_end(&call, error);                                       \
        ACCOUNT(&call, TRAFFIC_##SHAPE, request, FLAGS);              \
        return error;                                                 \
    }                                                                 \
    EXPORT_##FORMS(NAME, LIKE, SHAPE)

#define STARTING(NAME, SHAPE, FORMS) RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, call_account_started, 0)
#define STARTING_RECEIVE(NAME, SHAPE, FORMS) RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, call_account_started, REQUEST_RECEIVE)
#define STARTING_EXCHANGE(NAME, SHAPE, FORMS) RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, call_account_started, REQUEST_EXCHANGE)
#define PREPARING(NAME, SHAPE, FORMS) RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, call_account_prepared, 0)
#define PREPARING_RECEIVE(NAME, SHAPE, FORMS) RETURNING_A_REQUEST(NAME, SHAPE, FORMS, STARTING, call_account_prepared, REQUEST_RECEIVE)
#define PREPARING_WITH_INFO(NAME, SHAPE, FORMS) RETURNING_A_REQUEST(NAME, SHAPE, FORMS, PREPARING_WITH_INFO, call_account_prepared, 0)

#define MAKING(NAME, SHAPE, FORMS)                       \
    BODY(NAME, MAKING, SHAPE)                            \
    {                                                    \
        struct call call;                                \
        call_enter(&call, CALL_##NAME, site);            \
        ANNOUNCE_##SHAPE;                                \
        call_start(&call);                               \
        int error = real(ARGUMENTS_##SHAPE);             \
        call_end(&call, error);                          \
        call_account_made(&call, newcomm, MADE_##SHAPE); \
        return error;                                    \
    }                                                    \
    EXPORT_##FORMS(NAME, MAKING, SHAPE)

#include "expand.h"
