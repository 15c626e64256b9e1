/** Whether real guests were wanted and cannot be had on this machine; its message says what to install. Known by name, so that who asks need not load a simulator. */
export const isNoGuestImage = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'NoGuestImage'
