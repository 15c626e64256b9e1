/** What the two flavours say of themselves. */
export const releases = {
  8: { version: '8.4.21', release: '8.4', repoid: '2606ac85c8a8a4d0' },
  9: { version: '9.2.11', release: '9.2', repoid: 'f6997e6900000000' },
} as const
