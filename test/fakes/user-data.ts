import type { UserDataStore } from '../../lib/user-data.ts'

/** Publishers' cloud-config in memory; held to the real store by test/contract/user-data.test.ts. */
export function createMemoryUserData(): UserDataStore {
  const kept = new Map<string, { generation: number; userData: string }>()
  return {
    put: async (uid, generation, userData) => void kept.set(uid, { generation, userData }),
    async get(uid, generation) {
      const item = kept.get(uid)
      return item?.generation === generation ? item.userData : undefined
    },
    remove: async (uid) => void kept.delete(uid),
  }
}
