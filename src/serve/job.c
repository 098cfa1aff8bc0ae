/* See job.h. */
#include "serve/job.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

struct job_queue {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    job *waiting, **waiting_end, *finished, **finished_end;
    int count; /* waiting or running */
    bool stop;
    void (*wake)(void *context);
    void *context;
};

static void *work(void *context) {
    job_queue *q = context;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->waiting && !q->stop) pthread_cond_wait(&q->more, &q->lock);
        job *j = q->waiting;
        if (!j) break;
        q->waiting = j->next;
        if (!q->waiting) q->waiting_end = &q->waiting;
        pthread_mutex_unlock(&q->lock);
        j->next = NULL;
        j->run(j);
        pthread_mutex_lock(&q->lock);
        *q->finished_end = j;
        q->finished_end = &j->next;
        q->count--;
        q->wake(q->context);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

job_queue *job_queue_create(void (*wake)(void *context), void *context) {
    job_queue *q = mem_zero(1, sizeof *q);
    q->waiting_end = &q->waiting;
    q->finished_end = &q->finished;
    q->wake = wake;
    q->context = context;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->more, NULL);
    int status = pthread_create(&q->thread, NULL, work, q);
    HEARTH_ASSERT(status == 0);
    return q;
}

bool job_queue_add(job_queue *q, job *j) {
    pthread_mutex_lock(&q->lock);
    bool room = q->count < JOBS_MAX;
    if (room) {
        j->next = NULL;
        *q->waiting_end = j;
        q->waiting_end = &j->next;
        q->count++;
        pthread_cond_signal(&q->more);
    }
    pthread_mutex_unlock(&q->lock);
    return room;
}

void job_queue_finish(job_queue *q) {
    pthread_mutex_lock(&q->lock);
    job *list = q->finished;
    q->finished = NULL;
    q->finished_end = &q->finished;
    pthread_mutex_unlock(&q->lock);
    while (list) {
        job *next = list->next;
        list->done(list);
        list = next;
    }
}

void job_queue_destroy(job_queue *q) {
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    job_queue_finish(q);
    pthread_cond_destroy(&q->more);
    pthread_mutex_destroy(&q->lock);
    free(q);
}
