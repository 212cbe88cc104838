"""What the guest wrote to its two serial lines, as a slab trace and the text beside it."""

import lzma
import re
import sys

guest, name, arguments, work = sys.argv[1:]
console = open(f"{guest}/console", errors="replace").read().replace("\r", "")
beside = console[console.index("@@uname") : console.index("@@end")]
with open(f"{name}.txt", "w") as out:
    out.write(f"{beside}@@end\n# qemu: {arguments}\n# work: {work}\n")

line = re.compile(
    r"^\s*(.+?)-(\d+)\s+\[(\d+)\]\s+\S*\s*(\d+\.\d+): kmem_cache_(alloc|free): .*?ptr=(?:0x)?([0-9a-f]+)"
)
rows = ["seconds,cpu,task,event,object"]
for text in open(f"{guest}/trace", errors="replace"):
    text = text.replace("\r", "")
    if text.startswith("#") or not text.strip():
        continue
    found = line.match(text)
    if not found:
        sys.exit(f"{name}: no event: {text.strip()[:150]}")
    task, pid, cpu, seconds, event, address = found.groups()
    rows.append(f"{seconds},{int(cpu)},{task.strip()}-{pid},slab_{event},{address}")
with lzma.open(f"{name}.csv.xz", "wb", preset=9) as out:
    out.write(("\n".join(rows) + "\n").encode())
print(f"{name}: {len(rows) - 1} events")
