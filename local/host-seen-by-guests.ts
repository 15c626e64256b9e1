/**
 * Where a real guest of the simulated cluster sees this host, and all who come to it by a forwarded port. Source: QEMU documentation,
 * "Network emulation", user mode.
 */
export const HOST_SEEN_BY_GUESTS = '10.0.2.2'
