#!/usr/bin/env bash
# Compares the AVX-512 kernels of sz with the others on a machine without AVX-512: boots Linux with
# tests/fuzz/random_main.cpp in the emulator Bochs. Takes some minutes. Wants Debian or Ubuntu, and
#   apt-get install bochs bochsbios vgabios isolinux syslinux-common xorriso cpio busybox-static g++ cmake
# The kernel is downloaded (linux-image-cloud-amd64), not installed.
#
#   scripts/emulate_avx512.sh [ROUNDS]
set -euo pipefail
rounds=${1:-60}
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cmake -S "$source/sz" -B build -DCMAKE_BUILD_TYPE=Release >build.log
cmake --build build -j "$(nproc)" >>build.log
mkdir -p root iso
g++ -std=c++17 -O2 -static -I "$source/sz/include" "$source/tests/fuzz/random_main.cpp" build/libsz.a -fopenmp \
  -o root/fuzz 2>>build.log

kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/ *Depends: //p' | head -n 1)
apt-get download "$kernel" >>build.log 2>&1
dpkg-deb -x "$kernel"_*.deb kernel

# The last word on the console is the verdict.
cat >root/init <<END
#!/busybox sh
/fuzz $rounds && echo PASSED || echo FAILED
/busybox poweroff -f
END
chmod +x root/init
cp "$(command -v busybox)" root/busybox
(cd root && find . | cpio --quiet -o -H newc >../iso/initrd)

# Bochs 2.7 reports the size of the compacted XSAVE area as that of the plain one, and none for PKRU; Linux
# would do without AVX. So it is told not to use them: the numbers are XSAVEC, XSAVES, PKU and OSPKE.
cp kernel/boot/vmlinuz-* iso/vmlinuz
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 iso/
cat >iso/isolinux.cfg <<END
default sz
label sz
kernel vmlinuz
append initrd=initrd console=ttyS0,115200 quiet nosmp noapic nokaslr mitigations=off tsc=reliable lpj=4000000 clearcpuid=321,323,515,516
END
xorriso -as mkisofs -quiet -o boot.iso -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 \
  -boot-info-table iso 2>>build.log

cat >bochsrc <<END
plugin_ctrl: unmapped=1, speaker=0
speaker: enabled=0
sound: driver=dummy
display_library: rfb, options="timeout=0"
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model=corei7_skylake_x, count=1, ips=50000000
memory: guest=512, host=512
ata0-master: type=cdrom, path=boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=console.txt
log: bochs.log
END
echo continue >commands
bochs -q -f bochsrc -rc commands </dev/null >bochs.out 2>&1 || true
cat console.txt
grep -q '^3 instruction sets' console.txt && grep -q '^PASSED' console.txt
