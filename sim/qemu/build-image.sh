#!/bin/sh
# Builds what the simulated machines of QEMU boot from: a small Debian 12 with cloud-init, twice.
#
#   bare.qcow2            cloud-init and nothing of ours: a proxy's first boot installs agent and proxy program
#   golden.qcow2          the same with qemu-guest-agent and tinyproxy, as Debian installs them
#   vmlinuz, initrd.img   their kernel
#   mirror/               the packages that golden has and bare has not, for machines that are to install them without internet
#
# usage: build-image.sh FOLDER    as root; the folder is there and empty
#
# The file system lies on the whole disk and the kernel beside it: no partition, no boot loader, no loop device.
set -eu
folder=$1
root=$folder/root
packages='qemu-guest-agent tinyproxy'

mmdebstrap --mode=root --format=directory --variant=minbase \
  --include=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,udev,dbus,e2fsprogs,iproute2,ifupdown,isc-dhcp-client,cloud-init \
  --aptopt='Acquire::Languages "none"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='chroot "$1" apt-get clean' \
  --customize-hook="chroot \"\$1\" apt-get install --quiet --yes --download-only --no-install-recommends $packages" \
  --customize-hook="mkdir $folder/mirror && cp \"\$1\"/var/cache/apt/archives/*.deb $folder/mirror/" \
  bookworm "$root"

mv "$root"/boot/vmlinuz-* "$folder/vmlinuz"
mv "$root"/boot/initrd.img-* "$folder/initrd.img"
rm -f "$root/vmlinuz" "$root/initrd.img" "$root/vmlinuz.old" "$root/initrd.img.old"
echo 'LABEL=rootfs / ext4 defaults,noatime 0 0' >"$root/etc/fstab"
rm -f "$root/etc/hostname" "$root/etc/resolv.conf"

# The first start gives it a machine-id of its own, as docs/proxmox-setup.md asks of every template.
: >"$root/etc/machine-id"

# The stages of cloud-init that a proxy's machine has use for. Debian's list reaches for ssh, grub and snap as well, which a
# minimal system has not, and each module costs seconds on an emulated processor.
cat >"$root/etc/cloud/cloud.cfg.d/90-template.cfg" <<'END'
datasource_list: [NoCloud]
cloud_init_modules: [seed_random, bootcmd, write_files, growpart, resizefs, set_hostname, update_hostname, update_etc_hosts]
cloud_config_modules: [apt_configure, locale, runcmd]
cloud_final_modules: [package_update_upgrade_install, write_files_deferred, scripts_vendor, scripts_per_once, scripts_per_boot, scripts_per_instance, scripts_user, final_message]
END
# What a machine that lives for a test has no use for. Each is a process or more, and those cost seconds as well.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  getty@tty1.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-update-utmp.service \
  systemd-update-utmp-runlevel.service dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
  sys-kernel-config.mount sys-fs-fuse-connections.mount modprobe@configfs.service modprobe@drm.service modprobe@fuse.service \
  modprobe@efi_pstore.service modprobe@loop.service modprobe@dm_mod.service; do
  ln -s /dev/null "$root/etc/systemd/system/$unit"
done

disk() {
  truncate --size 2G "$folder/raw"
  mke2fs -q -t ext4 -L rootfs -d "$root" "$folder/raw"
  qemu-img convert -f raw -O qcow2 "$folder/raw" "$folder/$1.qcow2"
  rm "$folder/raw"
}

disk bare
cp "$folder"/mirror/*.deb "$root/tmp/"
DEBIAN_FRONTEND=noninteractive chroot "$root" sh -c 'dpkg --install /tmp/*.deb && rm /tmp/*.deb'
disk golden
rm -rf "$root"
