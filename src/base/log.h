// Log: the library reports, the program prints. A sink is set once by cli/; without one nothing is
// shown.
#ifndef DC_LOG_H
#define DC_LOG_H

typedef enum dc_level { DC_INFO, DC_WARN } dc_level;
typedef void dc_log_sink(void *ctx, dc_level level, const char *line);

void dc_log_set(dc_log_sink *sink, void *ctx);
void dc_log(dc_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
