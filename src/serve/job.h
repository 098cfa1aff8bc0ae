/* One worker thread for text work that would hold up the event loop. Jobs run in order. */
#ifndef HEARTH_SERVE_JOB_H
#define HEARTH_SERVE_JOB_H

#include <stdbool.h>

typedef struct job job;
struct job {
    void (*run)(job *j);  /* on the worker */
    void (*done)(job *j); /* on the thread that calls job_queue_finish; frees the job */
    job *next;
};

typedef struct job_queue job_queue;
enum { JOBS_MAX = 64 };
/* wake is called on the worker when a job has run. */
job_queue *job_queue_create(void (*wake)(void *context), void *context);
void job_queue_destroy(job_queue *q);     /* runs what is queued, then calls done for all */
bool job_queue_add(job_queue *q, job *j); /* false: JOBS_MAX are waiting */
void job_queue_finish(job_queue *q);      /* calls done of those that have run */

#endif
