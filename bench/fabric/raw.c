/* Bare libfabric, as one of two processes: what the figures of this package stand beside.
 *
 * The leanest loops that do the same as a figure does: no staging, no credits, no other peers. One
 * endpoint, one completion queue, one registered region whose first half the peer stores to, and
 * whose second half is sent from. Puts of 8 bytes are injected, which needs no completion, where
 * that is the faster way: everywhere but for a stream of notified puts over shm.
 *
 * A wait reads the completion queue. After LOOKS reads that found nothing, each further one is
 * followed by sched_yield: as in a wait of Flagpost, of which 64 turns read it three times each.
 *
 *   argument       the provider, as libfabric names it
 *   to stdout      first line: this end's card, in hexadecimal digits
 *   from stdin     first line: this process's rank, and the peer's card
 *   from stdin     then, a line per figure: name, bytes, rounds, puts in flight
 *   to stdout      nanoseconds, by this process's clock
 *
 * Both processes get the same lines. The end of stdin ends the process.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define HALF ((size_t)16 << 20)
#define LOOKS 192
#define BATCH 16
#define NAME 512

/* What the peer must know of an end. */
struct card {
	uint64_t key;
	uint64_t base;
	size_t len;
	unsigned char name[NAME];
};

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_mr *mr;
static void *desc;
static unsigned char *memory, *source;
static struct card peer;
static fi_addr_t address;

/* Completions of own operations, and immediates of the peer: all that came, and those awaited. */
static uint64_t done, told, heard;
static unsigned idle;

/* Whether a stream of notified puts is injected. */
static int injects_streams;

static void check(const char *what, long result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "raw: %s: %s\n", what, fi_strerror((int)-result));
	exit(1);
}

/* Reads what the completion queue has. */
static void look(void)
{
	struct fi_cq_data_entry entries[BATCH];
	ssize_t count = fi_cq_read(cq, entries, BATCH);

	if (count == -FI_EAGAIN) {
		if (++idle > LOOKS)
			sched_yield();
		return;
	}
	check("fi_cq_read", count);
	idle = 0;
	for (ssize_t i = 0; i < count; i++) {
		if (entries[i].flags & FI_REMOTE_CQ_DATA)
			told++;
		else
			done++;
	}
}

/* Repeats a call that begins an operation until it has begun. */
#define BEGIN(call)                             \
	do {                                    \
		ssize_t result;                 \
		while ((result = (call)) == -FI_EAGAIN) \
			look();                 \
		check(#call, result);           \
	} while (0)

static void notify(size_t at)
{
	BEGIN(fi_inject_writedata(ep, source + at, 8, 7, address, peer.base + at, peer.key));
}

/* The next of a stream of notified puts. */
static void stream(void)
{
	if (injects_streams)
		notify(0);
	else
		BEGIN(fi_writedata(ep, source, 8, desc, 7, address, peer.base, peer.key, NULL));
}

/* Waits for `count` more immediates. */
static void hear(uint64_t count)
{
	heard += count;
	while (told < heard)
		look();
}

/* Stores, and completes when that and all that was stored before is in place there. */
static void put_confirmed(size_t at, size_t bytes)
{
	struct iovec from = { source + at, bytes };
	struct fi_rma_iov place = { peer.base + at, bytes, peer.key };
	struct fi_msg_rma message = { &from, &desc, 1, address, &place, 1, NULL, 0 };

	BEGIN(fi_writemsg(ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
}

static void both(void)
{
	notify(0);
	hear(1);
}

static void ping_pong(int rank, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++) {
		if (rank == 0)
			notify(0);
		hear(1);
		if (rank == 1)
			notify(0);
	}
}

/* `window` puts, side by side, the last one confirmed; again and again. */
static void bandwidth(size_t bytes, uint64_t rounds, uint64_t window)
{
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t all = done + window;

		for (uint64_t put = 0; put + 1 < window; put++) {
			size_t at = put * bytes;
			BEGIN(fi_write(ep, source + at, bytes, desc, address, peer.base + at, peer.key,
				       NULL));
		}
		put_confirmed((window - 1) * bytes, bytes);
		while (done < all)
			look();
	}
}

/* `rounds` puts of 8 bytes, the last one confirmed. */
static void puts_rate(uint64_t rounds)
{
	uint64_t all = done + 1;

	for (uint64_t put = 0; put + 1 < rounds; put++)
		BEGIN(fi_inject_write(ep, source, 8, address, peer.base, peer.key));
	put_confirmed(0, 8);
	while (done < all)
		look();
}

static void gets(size_t bytes, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t all = done + 1;

		BEGIN(fi_read(ep, source, bytes, desc, address, peer.base, peer.key, NULL));
		while (done < all)
			look();
	}
}

/* The part of `rank` in a figure; rank 1 only looks on where rank 0 stores or loads alone. */
static void figure(int rank, const char *name, size_t bytes, uint64_t rounds, uint64_t window)
{
	if (!strcmp(name, "ping-pong")) {
		ping_pong(rank, rounds);
	} else if (!strcmp(name, "notified")) {
		if (rank == 0) {
			uint64_t all = done + (injects_streams ? 0 : rounds);

			for (uint64_t i = 0; i < rounds; i++)
				stream();
			hear(1);
			while (done < all)
				look();
		} else {
			hear(rounds);
			notify(0);
		}
	} else if (rank == 0) {
		if (!strcmp(name, "bandwidth"))
			bandwidth(bytes, rounds, window);
		else if (!strcmp(name, "puts"))
			puts_rate(rounds);
		else if (!strcmp(name, "gets"))
			gets(bytes, rounds);
		else
			check(name, -FI_EINVAL);
	}
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct fi_info *choose(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int addressed = !strncmp(provider, "tcp", 3);

	if (!hints)
		check("fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_WAW;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), addressed ? "127.0.0.1" : NULL, NULL,
				       addressed ? FI_SOURCE : 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static struct card open_end(struct fi_info *info)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 1 };
	struct fi_cq_attr cq_attr = { .size = 4096, .format = FI_CQ_FORMAT_DATA };
	uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct card card = { .len = NAME };

	check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
	check("fi_domain", fi_domain(fabric, info, &domain, NULL));
	check("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
	check("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
	check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
	check("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
	check("fi_enable", fi_enable(ep));
	memory = aligned_alloc(4096, 2 * HALF);
	if (!memory)
		check("memory", -FI_ENOMEM);
	memset(memory, 7, 2 * HALF);
	source = memory + HALF;
	check("fi_mr_reg", fi_mr_reg(domain, memory, 2 * HALF, access, 0, 0, 0, &mr, NULL));
	desc = fi_mr_desc(mr);
	check("fi_getname", fi_getname(&ep->fid, card.name, &card.len));
	card.key = fi_mr_key(mr);
	card.base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
	return card;
}

static void close_end(void)
{
	struct fid *all[] = { &ep->fid, &mr->fid, &cq->fid, &av->fid, &domain->fid, &fabric->fid };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		fi_close(all[i]);
}

static void print_card(const struct card *card)
{
	for (size_t i = 0; i < sizeof(*card); i++)
		printf("%02x", ((const unsigned char *)card)[i]);
	printf("\n");
	fflush(stdout);
}

static void read_card(struct card *card)
{
	for (size_t i = 0; i < sizeof(*card); i++) {
		unsigned byte;

		if (scanf("%2x", &byte) != 1)
			check("the card of the peer", -FI_EINVAL);
		((unsigned char *)card)[i] = (unsigned char)byte;
	}
}

int main(int count, char **arguments)
{
	struct card own;
	char name[32];
	size_t bytes;
	uint64_t rounds, window;
	int rank;

	if (count != 2)
		check("one argument: the provider", -FI_EINVAL);
	injects_streams = strcmp(arguments[1], "shm") != 0;
	own = open_end(choose(arguments[1]));
	print_card(&own);
	if (scanf("%d", &rank) != 1)
		check("the rank", -FI_EINVAL);
	read_card(&peer);
	if (fi_av_insert(av, peer.name, 1, &address, 0, NULL) != 1)
		check("fi_av_insert", -FI_EINVAL);
	while (scanf("%31s %zu %" SCNu64 " %" SCNu64, name, &bytes, &rounds, &window) == 4) {
		uint64_t start, end;

		both();
		start = now();
		figure(rank, name, bytes, rounds, window);
		end = now();
		both();
		printf("%" PRIu64 "\n", end - start);
		fflush(stdout);
	}
	close_end();
	return 0;
}
