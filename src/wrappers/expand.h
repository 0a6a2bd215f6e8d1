/* Expands calls.def with the kinds that the including file has defined. The other kinds expand to
 * nothing. */
#ifndef BLOCKING
#define BLOCKING(NAME, SHAPE, FORMS)
#endif
#ifndef READING
#define READING(NAME, SHAPE, FORMS)
#endif
#ifndef POLLING
#define POLLING(NAME, SHAPE, FORMS)
#endif
#ifndef STARTING
#define STARTING(NAME, SHAPE, FORMS)
#define STARTING_RECEIVE(NAME, SHAPE, FORMS)
#define STARTING_EXCHANGE(NAME, SHAPE, FORMS)
#endif
#ifndef PREPARING
#define PREPARING(NAME, SHAPE, FORMS)
#define PREPARING_RECEIVE(NAME, SHAPE, FORMS)
#define PREPARING_WITH_INFO(NAME, SHAPE, FORMS)
#endif
#ifndef MAKING
#define MAKING(NAME, SHAPE, FORMS)
#endif
#ifndef MAKING_ON
#define MAKING_ON(NAME, SHAPE, FORMS)
#endif
#ifndef ENDING
#define ENDING(NAME, SHAPE, FORMS)
#endif
#ifndef BY_HAND
#define BY_HAND(NAME, SHAPE, FORMS)
#define STARTING_BY_HAND(NAME, SHAPE, FORMS)
#endif
#define UNLIKE(NAME, SHAPE, FORMS)
#define SETUP(NAME, SHAPE, FORMS)

#define CALL(NAME, FAMILY, KIND, SHAPE, FORMS, BANDWIDTH, WAITS_FOR) KIND(NAME, SHAPE, FORMS)
#include "calls.def"
