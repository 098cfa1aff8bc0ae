/* What `hearth dump SUBJECT` shows, for bug reports: one file per subject, dump_<subject>.c.
 *
 * argv[0] is the subject; the result is an exit status as of any command. */
#ifndef HEARTH_CLI_DUMP_H
#define HEARTH_CLI_DUMP_H

int dump_tokens(int argc, char **argv);
int dump_prompt(int argc, char **argv);
int dump_logits(int argc, char **argv);

#endif
