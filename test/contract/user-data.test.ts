import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLedger } from '../../lib/ledger.ts'
import { MAX_USER_DATA_BYTES } from '../../lib/spec.ts'
import { createUserDataStore, type UserDataStore } from '../../lib/user-data.ts'
import { createMemoryUserData } from '../fakes/user-data.ts'
import { type LocalAws, openLocalAws } from './local-aws.ts'

function defineUserDataContract(
  name: string,
  open: () => Promise<{ store: UserDataStore; close(): Promise<void> }>,
) {
  describe(`user data contract: ${name}`, () => {
    let opened: Awaited<ReturnType<typeof open>>
    let store: UserDataStore
    let uid = ''
    let count = 0

    beforeAll(async () => {
      opened = await open()
      store = opened.store
    })
    beforeEach(() => {
      uid = `row-${++count}`
    })
    afterAll(() => opened.close())

    it('gives back what was put, to the letter', async () => {
      const text = `#cloud-config\r\n# ñ 🚀 \u0001\n${'x'.repeat(MAX_USER_DATA_BYTES - 64)}\n`
      await store.put(uid, 1, text)
      expect(await store.get(uid, 1)).toBe(text)
    })

    it('keeps an empty text apart from none', async () => {
      expect(await store.get(uid, 1)).toBeUndefined()
      await store.put(uid, 1, '')
      expect(await store.get(uid, 1)).toBe('')
    })

    it('gives no generation the text of another', async () => {
      await store.put(uid, 1, 'one')
      await store.put(uid, 2, 'two')
      expect(await store.get(uid, 1)).toBeUndefined()
      expect(await store.get(uid, 2)).toBe('two')
      expect(await store.get(uid, 3)).toBeUndefined()
    })

    it('forgets one proxy’s text, also twice, and no other’s', async () => {
      await store.put(uid, 1, 'mine')
      await store.put(`${uid}x`, 1, 'another’s')
      await store.remove(uid)
      await store.remove(uid)
      expect(await store.get(uid, 1)).toBeUndefined()
      expect(await store.get(`${uid}x`, 1)).toBe('another’s')
    })
  })
}

defineUserDataContract('in memory', async () => ({ store: createMemoryUserData(), close: async () => {} }))

defineUserDataContract('on tables', async () => {
  const aws = await openLocalAws()
  const store = createUserDataStore(aws.tables, aws.emulators.tables.proxies)
  return { store, close: () => aws.close() }
})

describe('user data in the table of the rows', () => {
  let aws: LocalAws
  beforeAll(async () => {
    aws = await openLocalAws()
  })
  afterAll(() => aws.close())

  it('is no row', async () => {
    const table = aws.emulators.tables.proxies
    const ledger = createLedger({ client: aws.tables, table, leaseMs: 1000, settleMs: 1000 })
    await createUserDataStore(aws.tables, table).put('a', 1, 'text')
    expect(await ledger.read('a')).toBeUndefined()
    expect(await ledger.read('userdata#a')).toBeUndefined()
  })
})
