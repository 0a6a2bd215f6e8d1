/* The build ids of the libraries that communicate: they say which build of a library it was, where
 * versions do not. */
#ifndef COMMPROF_BUILD_IDS_H
#define COMMPROF_BUILD_IDS_H

/* Writes a fact build_id.<file> for each such library that is loaded now and has a build id; again
 * if libraries came or went since. */
void build_ids_record(void);

#endif
