/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The recorder's half in the kernel: a program at each tracepoint decides whether its event is recorded and puts what a recording
 * keeps of it into its CPU's ring. `make bpf` compiles this into recorder.bpf.o, which is committed; src/capture/bpf loads it.
 *
 * Pages come as addresses of their descriptors. Programs that need no more of them are plain raw tracepoints, which see numbers; those
 * that follow pointers know their types (tp_btf).
 */
#include "helpers.h"
#include "kernel.h"
#include "files.h"
#include "filter.h"
#include "ring.h"

/* The kernel lets only programs with a licence like this follow its pointers. */
char granted[] __attribute__((section("license"), used)) = "Dual MIT/GPL";

/* Where descriptors of pages begin, and the size of one as a power of two. */
const volatile u64 page_base = 0;
const volatile u32 page_shift = 0;

INLINE u32 pfn_of(u64 page)
{
	return (page - page_base) >> page_shift;
}

INLINE u32 block_shape(u32 order, u32 migratetype)
{
	return (order & 15) | (migratetype & 7) << 4;
}

/* Records an event that is no more than its first two words. */
INLINE int put_at(struct here *at, enum kind kind, u64 word)
{
	u64 time = monotonic_ns();
	u64 *record = reserve(at, 2);

	if (record) {
		record[1] = word;
		commit(record, kind, time);
	}
	return 0;
}

INLINE int put(enum kind kind, u64 word)
{
	struct here at = here();
	return at.cpu ? put_at(&at, kind, word) : 0;
}

/* The same with a third word. */
INLINE int put_more_at(struct here *at, enum kind kind, u64 word, u64 more)
{
	u64 time = monotonic_ns();
	u64 *record = reserve(at, 3);

	if (record) {
		record[1] = word;
		record[2] = more;
		commit(record, kind, time);
	}
	return 0;
}

INLINE int put_more(enum kind kind, u64 word, u64 more)
{
	struct here at = here();
	return at.cpu ? put_more_at(&at, kind, word, more) : 0;
}

/* The largest block: all events of a block are recorded, or none. */
#define UNIT_ORDER 10
/* __GFP_MOVABLE, the same in all kernels since it came. */
#define GFP_MOVABLE 0x8

/* Whether a page's events are sampled away; then it is counted. */
INLINE int is_only_counted(struct here *at, u32 pfn)
{
	u32 shift = *(volatile u64 *)&at->cpu->one_in_shift & 31;

	if (!shift || (pfn >> UNIT_ORDER) * 0x9e3779b1u >> (32 - shift) == 0)
		return 0;
	__sync_fetch_and_add(&at->cpu->counted, 1);
	return 1;
}

INLINE int put_page(enum kind kind, u32 tid, u32 shape, u32 pfn)
{
	struct here at = here();

	if (!at.cpu || is_only_counted(&at, pfn))
		return 0;
	return put_at(&at, kind, second(tid, shape, pfn));
}

PROGRAM("raw_tp/mm_page_alloc") int page_alloc(u64 *ctx)
{
	u32 tid = current_ids();
	u64 page = ctx[0], gfp = ctx[2];
	u32 order = ctx[1], shape = block_shape(order, ctx[3]);

	if (!is_member(tid))
		return 0;
	if (!page)
		return put_more(NO_PAGE, second(tid, shape, 0), gfp);
	u32 pfn = pfn_of(page);
	struct here at = here();
	if (!at.cpu)
		return 0;
	if (is_only_counted(&at, pfn)) {
		if (gfp & GFP_MOVABLE)
			__sync_fetch_and_add(&at.cpu->counted_pages, 1ull << (order & 15));
		return 0;
	}
	if (!everybody)
		hold(pfn, order);
	return put_more_at(&at, PAGE_ALLOC, second(tid, shape, pfn), gfp);
}

INLINE int freed(u64 *ctx, struct here *at)
{
	u32 tid = current_ids();
	u32 pfn = pfn_of(ctx[0]), order = ctx[1];

	if (is_member(tid)) {
		if (is_only_counted(at, pfn))
			return 0;
	} else {
		int is_kept = let_go(pfn, order);
		at->cpu->kept_frees = at->cpu->kept_frees << 1 | is_kept;
		if (!is_kept)
			return 0;
	}
	return put_at(at, PAGE_FREE, second(tid, block_shape(order, 0), pfn));
}

PROGRAM("raw_tp/mm_page_free") int page_free(u64 *ctx)
{
	struct here at = here();

	if (!at.cpu)
		return 0;
	take(&at.cpu->frees, ctx[0]);
	return freed(ctx, &at);
}

PROGRAM("raw_tp/mm_page_free") int page_free_stand_in(u64 *ctx)
{
	struct here at = here();

	if (!at.cpu || was_taken(&at.cpu->frees, ctx[0]))
		return 0;
	__sync_fetch_and_add(&at.cpu->stand_ins, 1);
	return freed(ctx, &at);
}

/* Repeats frees. Of those by others user space picks out the ones that were recorded. */
PROGRAM("raw_tp/mm_page_free_batched") int page_free_batched(u64 *ctx)
{
	u32 tid = current_ids();
	struct here at = here();

	if (!at.cpu || (!is_member(tid) && !at.cpu->kept_frees))
		return 0;
	if (is_member(tid) && is_only_counted(&at, pfn_of(ctx[0])))
		return 0;
	return put_at(&at, PAGE_FREE_BATCHED, second(tid, 0, pfn_of(ctx[0])));
}

PROGRAM("raw_tp/mm_page_alloc_zone_locked") int zone_locked(u64 *ctx)
{
	u32 tid = current_ids();

	/* Its page is none when the buddy lists had none. */
	if (!is_member(tid) || !ctx[0])
		return 0;
	u32 shape = block_shape(ctx[1], ctx[2]) | (ctx[3] ? 1 << 7 : 0);
	return put_page(ZONE_LOCKED, tid, shape, pfn_of(ctx[0]));
}

PROGRAM("raw_tp/mm_page_pcpu_drain") int pcpu_drain(u64 *ctx)
{
	u32 tid = current_ids();

	if (!is_member(tid))
		return 0;
	return put_page(PCPU_DRAIN, tid, block_shape(ctx[1], ctx[2]), pfn_of(ctx[0]));
}

/* Tells user space where descriptors lie: perf tells it the same pages' numbers. */
PROGRAM("raw_tp/mm_page_alloc") int page_address(u64 *ctx)
{
	u32 tid = current_ids();

	if (!is_member(tid) || !ctx[0])
		return 0;
	return put_more(PAGE_ADDRESS, second(tid, 0, 0), ctx[0]);
}

INLINE int fault(u64 *ctx)
{
	u32 tid = current_ids();

	if (!is_member(tid))
		return 0;
	u64 time = monotonic_ns();
	struct here at = here();
	if (!at.cpu)
		return 0;
	struct pt_regs *regs = (void *)ctx[1];
	u64 ip = regs->ip;
	/* Both addresses have 48 bits, the instruction's with its sign, but for huge address spaces. */
	u64 address = ctx[0];
	int is_short = !(address >> 48) && (u64)((s64)(ip << 16) >> 16) == ip && ctx[2] < 1024;
	if (is_short) {
		u64 *record = reserve(&at, 3);
		if (record) {
			record[1] = second(tid, ctx[2], address);
			record[2] = ip << 16 | address >> 32;
			commit(record, FAULT_SHORT, time);
		}
		return 0;
	}
	u64 *record = reserve(&at, 4);
	if (!record)
		return 0;
	record[1] = second(tid, 0, ctx[2]);
	record[2] = address;
	record[3] = ip;
	commit(record, FAULT, time);
	return 0;
}

PROGRAM("tp_btf/page_fault_user") int page_fault_user(u64 *ctx)
{
	return fault(ctx);
}

PROGRAM("tp_btf/page_fault_kernel") int page_fault_kernel(u64 *ctx)
{
	return fault(ctx);
}

/* Of a task's state: what tracepoints report of it, and what they report as blocked or idle. */
#define STATES_REPORTED 0x7f
#define STATE_BLOCKED 0x2
#define STATES_LIKE_BLOCKED 0x9000
#define STATE_IDLE 0x402
#define REPORTED_IDLE 0x80
#define REPORTED_PREEMPTED 0x100

INLINE u32 reported_state(int is_preempted, u32 state, u32 exit_state)
{
	if (is_preempted)
		return REPORTED_PREEMPTED;
	u32 reported = (state | exit_state) & STATES_REPORTED;
	if (state & STATES_LIKE_BLOCKED)
		reported = STATE_BLOCKED;
	if ((state & STATE_IDLE) == STATE_IDLE)
		reported = REPORTED_IDLE;
	return reported;
}

PROGRAM("tp_btf/sched_switch") int sched_switch(u64 *ctx)
{
	struct task_struct *from = (void *)ctx[1], *to = (void *)ctx[2];
	u32 tid = from->pid, next = to->pid;

	if (!is_member(tid) && !is_member(next))
		return 0;
	u32 state = reported_state(ctx[0] & 1, ctx[3], from->exit_state);
	return put(SWITCH, second(tid, state, next));
}

/* Bytes from a CPU's run queue to its preempt_count, which both are among the CPU's own variables. */
const volatile s64 to_preempt_count = 0;

/* Of preempt_count: a hard interrupt, or a soft one that is served rather than held off. */
#define IN_HARD_INTERRUPT 0xf0000
#define IN_SOFT_INTERRUPT 0x100

INLINE int is_interrupt(void)
{
	u32 count = 0;
	struct rq *own_queue = current_task()->se.cfs_rq->rq;

	read_kernel(&count, sizeof(count), (void *)own_queue + to_preempt_count);
	return (count & (IN_HARD_INTERRUPT | IN_SOFT_INTERRUPT)) != 0;
}

PROGRAM("tp_btf/sched_waking") int sched_waking(u64 *ctx)
{
	u32 tid = current_ids();
	struct task_struct *woken = (void *)ctx[0];
	u32 woken_tid = woken->pid;
	int is_by_world = is_interrupt();

	/* Who is interrupted wakes nobody. */
	if (!is_member(woken_tid) && (is_by_world || !is_member(tid)))
		return 0;
	return put(WAKING, second(tid, is_by_world, woken_tid));
}

PROGRAM("tp_btf/task_newtask") int task_newtask(u64 *ctx)
{
	u32 tid = current_ids();
	struct task_struct *child = (void *)ctx[0];
	u32 child_tid = child->pid;

	if (!everybody)
		inherit(tid, child_tid);
	if (!is_member(tid))
		return 0;
	return put_more(NEW_TASK, second(tid, 0, child_tid), ctx[1]);
}

PROGRAM("tp_btf/sched_process_exec") int sched_process_exec(u64 *ctx)
{
	u32 tid = current_ids();

	if (!is_member(tid))
		return 0;
	return put(EXEC, second(tid, 0, ctx[1]));
}

#define CALL_MBIND 237
#define CALL_SET_MEMPOLICY 238
#define CALL_MIGRATE_PAGES 256

/* Whether a call changes its caller's address space or makes another, by the numbers of x86-64. */
INLINE int is_of_space(u64 call)
{
	const u64 below_64 = 1ull << 9 | 1ull << 10 | 1ull << 11 | 1ull << 12 | /* mmap, mprotect, munmap, brk */
		1ull << 25 | 1ull << 28 | 1ull << 30 | /* mremap, madvise, shmat */
		1ull << 56 | 1ull << 57 | 1ull << 58; /* clone, fork, vfork */

	if (call < 64)
		return below_64 >> call & 1;
	return call == 67 || /* shmdt */
	       (call >= 149 && call <= 152) || /* mlock, munlock, mlockall, munlockall */
	       call == 157 || call == 325 || call == 329 || /* prctl, mlock2, pkey_mprotect */
	       call == 435 || /* clone3 */
	       call == CALL_MBIND || call == CALL_SET_MEMPOLICY || call == CALL_MIGRATE_PAGES ||
	       call == 279 || call == 450; /* move_pages, set_mempolicy_home_node */
}

#define CALL_PRCTL 157
#define PR_SET_THP_DISABLE 41

/* Whether the current call is made as programs of 32 bits make it: they number calls in another way. */
INLINE int is_of_32_bits(void)
{
	return current_task()->thread_info.status & 2;
}

/* Whether a call of the current task is recorded. Of prctl only one word is about memory. */
INLINE int is_recorded(u32 tid, u64 call, struct pt_regs *regs)
{
	if (!is_of_space(call) || !is_member(tid))
		return 0;
	if (is_of_32_bits())
		return 0;
	return call != CALL_PRCTL || regs->di == PR_SET_THP_DISABLE;
}

/* In the place of maxnode: masks stand in the places of their addresses. */
#define MASKS_ARE_READ (~0ull)

/* The first 64 of maxnode - 1 nodes in a program's mask. Whether it could be read. */
INLINE int read_nodes(u64 *mask, u64 maxnode)
{
	u64 address = *mask, bits = maxnode - 1;

	*mask = 0;
	if (!address || !maxnode || !bits)
		return 1;
	if (read_program(mask, sizeof(*mask), (void *)address))
		return 0;
	if (bits < 64)
		*mask &= (1ull << bits) - 1;
	return 1;
}

/* The nodes that a call is about lie in the program's memory, which may be another's by the time that the record is read. */
INLINE void read_masks(u64 call, u64 *record)
{
	u64 first, second = 0, maxnode;

	if (call == CALL_MBIND) {
		first = record[5];
		if (read_nodes(&first, record[6])) {
			record[5] = first;
			record[6] = MASKS_ARE_READ;
		}
	} else if (call == CALL_SET_MEMPOLICY) {
		first = record[3];
		if (read_nodes(&first, record[4])) {
			record[3] = first;
			record[4] = MASKS_ARE_READ;
		}
	} else if (call == CALL_MIGRATE_PAGES) {
		first = record[4];
		second = record[5];
		maxnode = record[3];
		if (read_nodes(&first, maxnode) && read_nodes(&second, maxnode)) {
			record[3] = MASKS_ARE_READ;
			record[4] = first;
			record[5] = second;
		}
	}
}

PROGRAM("tp_btf/sys_enter") int sys_enter(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u64 call = ctx[1];
	u32 tid = current_ids();

	if (!is_recorded(tid, call, regs))
		return 0;
	u64 time = monotonic_ns();
	struct here at = here();
	if (!at.cpu)
		return 0;
	u64 a = regs->di, b = regs->si, c = regs->dx, d = regs->r10, e = regs->r8, f = regs->r9;
	u64 *record = reserve(&at, 8);
	if (!record)
		return 0;
	record[1] = second(tid, call, 0);
	record[2] = a;
	record[3] = b;
	record[4] = c;
	record[5] = d;
	record[6] = e;
	record[7] = f;
	read_masks(call, record);
	commit(record, ENTER, time);
	return 0;
}

#define PAGE_BYTES 4096

/* A part of a program's memory, as readv(2) has it. */
struct part {
	u64 address, bytes;
};

/* A file, and a range of its pages or bytes. */
struct range {
	u64 inode, first, last;
	u32 device, order;
};

INLINE int put_range(enum kind kind, u32 tid, struct range range)
{
	u64 time = monotonic_ns();
	struct here at = here();

	if (!at.cpu)
		return 0;
	u64 *record = reserve(&at, 5);
	if (!record)
		return 0;
	record[1] = second(tid, range.order, range.device);
	record[2] = range.inode;
	record[3] = range.first;
	record[4] = range.last;
	commit(record, kind, time);
	return 0;
}

INLINE struct range file_of(struct inode *inode)
{
	struct super_block *file_system = inode->i_sb;
	struct range range = {.inode = inode->i_ino};

	range.device = file_system ? file_system->s_dev : inode->i_rdev;
	return range;
}

/* Calls that write to a file, by the numbers of x86-64. */
#define CALL_WRITE 1
#define CALL_PWRITE64 18
#define CALL_WRITEV 20
#define CALL_SENDFILE 40
#define CALL_SPLICE 275
#define CALL_FALLOCATE 285
#define CALL_PWRITEV 296
#define CALL_COPY_FILE_RANGE 326
#define CALL_PWRITEV2 328

INLINE int writes(u64 call)
{
	if (call < 64)
		return (1ull << CALL_WRITE | 1ull << CALL_PWRITE64 | 1ull << CALL_WRITEV | 1ull << CALL_SENDFILE) >> call & 1;
	return call == CALL_FALLOCATE || call == CALL_SPLICE || call == CALL_COPY_FILE_RANGE || call == CALL_PWRITEV ||
	       call == CALL_PWRITEV2;
}

/* Of fallocate's mode: what lies beyond the file's end does not make it longer. Other modes bring nothing in. */
#define FALLOC_KEEP_SIZE 1
#define TMPFS_MAGIC 0x01021994
/* Of a file's mode: its type, and the type of those that hold bytes. Devices lie on a tmpfs too. */
#define MODE_TYPE 0170000
#define MODE_REGULAR 0100000

/*
 * Pages of files in memory (tmpfs, memfd) come into being without an event: what wrote to one stands for it. Calls that write
 * anywhere else have their file system's event, or none.
 */
INLINE int wrote(u32 tid, u64 call, struct pt_regs *regs, s64 result)
{
	int is_copy = call == CALL_SPLICE || call == CALL_COPY_FILE_RANGE;
	u64 file, inode = 0, file_system = 0, magic = 0, first = 0, bytes = result;
	struct range range = {};
	u16 mode = 0;

	if (call == CALL_FALLOCATE ? result < 0 || regs->si & ~FALLOC_KEEP_SIZE : result <= 0)
		return 0;
	file = file_behind(is_copy ? regs->dx : regs->di);
	READ_FIELD(inode, file, struct file, f_inode);
	/* First, for most writes are to sockets and pipes, and each read costs. */
	READ_FIELD(mode, inode, struct inode, i_mode);
	if ((mode & MODE_TYPE) != MODE_REGULAR)
		return 0;
	READ_FIELD(file_system, inode, struct inode, i_sb);
	READ_FIELD(magic, file_system, struct super_block, s_magic);
	if (magic != TMPFS_MAGIC)
		return 0;
	if (call == CALL_FALLOCATE) {
		first = regs->dx;
		bytes = regs->r10;
	} else if (call == CALL_PWRITE64 || call == CALL_PWRITEV || (call == CALL_PWRITEV2 && (s64)regs->r10 != -1)) {
		first = regs->r10;
	} else {
		/* Where it stands, or what the program keeps in its place, is behind the bytes now. */
		if (!is_copy || !regs->r10)
			READ_FIELD(first, file, struct file, f_pos);
		else if (read_program(&first, sizeof(first), (void *)regs->r10))
			return 0;
		first -= bytes;
	}
	READ_FIELD(range.device, file_system, struct super_block, s_dev);
	READ_FIELD(range.inode, inode, struct inode, i_ino);
	range.first = first;
	range.last = bytes;
	return put_range(FILE_WRITE, tid, range);
}

PROGRAM("tp_btf/sys_exit") int sys_exit(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u64 call = regs->orig_ax;
	u32 tid = current_ids();

	if (writes(call) && is_member(tid) && !is_of_32_bits())
		return wrote(tid, call, regs, ctx[1]);
	if (!is_recorded(tid, call, regs))
		return 0;
	return put_more(LEAVE, second(tid, call, 0), ctx[1]);
}

PROGRAM("tp_btf/mm_filemap_get_pages") int file_read(u64 *ctx)
{
	u32 tid = current_ids();

	if (!is_member(tid))
		return 0;
	struct address_space *mapping = (void *)ctx[0];
	struct range range = file_of(mapping->host);
	range.first = ctx[1];
	range.last = ctx[2];
	return put_range(FILE_READ, tid, range);
}

/* Flags are the first word of every folio. */
INLINE u32 folio_order(struct folio *folio)
{
	u64 flags = *(volatile u64 *)folio;

	if (!(flags >> NUMBER_OF(enum pageflags, PG_head) & 1))
		return 0;
	struct folio___with_order *older = (void *)folio;
	if (HAS_FIELD(older->_folio_order))
		return older->_folio_order;
	return folio->_flags_1 & 0xff;
}

INLINE int folio_moved(enum kind kind, u64 *ctx)
{
	u32 tid = current_ids();

	if (!is_member(tid))
		return 0;
	struct folio *folio = (void *)ctx[0];
	struct range range = file_of(folio->mapping->host);
	range.first = folio->index;
	range.order = folio_order(folio);
	return put_range(kind, tid, range);
}

PROGRAM("tp_btf/mm_filemap_add_to_page_cache") int file_add(u64 *ctx)
{
	return folio_moved(FILE_ADD, ctx);
}

PROGRAM("tp_btf/mm_filemap_delete_from_page_cache") int file_drop(u64 *ctx)
{
	return folio_moved(FILE_DROP, ctx);
}

INLINE int written(u64 *ctx)
{
	u32 tid = current_ids();

	if (!is_member(tid))
		return 0;
	struct range range = file_of((struct inode *)ctx[0]);
	range.first = ctx[1];
	range.last = (u32)ctx[2];
	return put_range(FILE_WRITE, tid, range);
}

PROGRAM("tp_btf/ext4_da_write_begin") int ext4_da_write_begin(u64 *ctx)
{
	return written(ctx);
}

PROGRAM("tp_btf/ext4_write_begin") int ext4_write_begin(u64 *ctx)
{
	return written(ctx);
}

/* What a direct read or write needs of its program's memory. */
struct request {
	u32 tid;
	int is_written_to;
	u64 left; /* bytes */
};

/* A part of the memory that it names: as far as there is something to read or write. */
INLINE void needed(struct request *request, u64 address, u64 bytes)
{
	bytes = bytes < request->left ? bytes : request->left;
	request->left -= bytes;
	u64 pages = ((address & (PAGE_BYTES - 1)) + bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	if (bytes)
		put_more(NEEDED, second(request->tid, request->is_written_to, pages), address);
}

/* Of a request's parts the first so many are told of. */
#define PARTS_MAX 16

/*
 * Pages that a direct read or write needs come in without an exception: no other tracepoint has their addresses. What is there already is
 * told, too. Buffers that are registered were brought in before.
 */
PROGRAM("tp_btf/iomap_dio_rw_begin") int direct(u64 *ctx)
{
	struct kiocb *call = (void *)ctx[0];
	struct iov_iter *memory = (void *)ctx[1];
	u32 tid = current_ids();

	if (!is_member(tid))
		return 0;
	struct request request = {tid, !memory->data_source, memory->count};
	if (request.is_written_to) {
		s64 in_file = call->ki_filp->f_inode->i_size - call->ki_pos;
		if (in_file <= 0)
			return 0;
		request.left = request.left < (u64)in_file ? request.left : (u64)in_file;
	}
	if (memory->iter_type == NUMBER_OF(enum iter_type, ITER_UBUF)) {
		needed(&request, (u64)memory->ubuf + memory->iov_offset, memory->count);
		return 0;
	}
	if (memory->iter_type != NUMBER_OF(enum iter_type, ITER_IOVEC))
		return 0;
	u64 skip = memory->iov_offset;
#pragma clang loop unroll(disable)
	for (u32 at = 0; at < PARTS_MAX && at < memory->nr_segs; at++) {
		struct part part = {};
		if (read_kernel(&part, sizeof(part), (void *)memory->__iov + at * sizeof(part)) || part.bytes < skip)
			return 0;
		needed(&request, part.address + skip, part.bytes - skip);
		skip = 0;
	}
	return 0;
}
