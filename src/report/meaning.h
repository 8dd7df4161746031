// What a column of train.csv says, in a sentence for people.
#ifndef DC_MEANING_H
#define DC_MEANING_H

// Nullable: the result, where nothing is known of a column.
const char *dc_meaning(const char *column);

#endif
