/** What was opened so far, to be closed in the opposite order: at the end, or when a later opening fails. */
export type Opened = {
  add<T extends { close(): unknown }>(thing: T): T
  /** Closes everything, even when a part of it fails to. @throws {AggregateError} of what failed */
  close(): Promise<void>
}

export function createOpened(): Opened {
  const things: { close(): unknown }[] = []
  return {
    add(thing) {
      things.push(thing)
      return thing
    },
    async close() {
      const failures: unknown[] = []
      for (let thing = things.pop(); thing; thing = things.pop()) {
        try {
          await thing.close()
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed')
    },
  }
}
