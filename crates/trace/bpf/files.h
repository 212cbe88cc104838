/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The files that the current task has open.
 */
#pragma once

#include "kernel.h"

/* Reads a field of a structure that a number is the address of. */
#define READ_FIELD(to, address, type, field) read_kernel(&(to), sizeof(to), &((type *)(address))->field)

/* The file behind a descriptor of the current task, if there is one. */
INLINE u64 file_behind(u32 descriptor)
{
	struct fdtable *table = current_task()->files->fdt;
	u64 file = 0;

	if (descriptor < table->max_fds)
		read_kernel(&file, sizeof(file), (void *)table->fd + descriptor * sizeof(file));
	return file;
}
