import { PutCommand, QueryCommand } from '@aws-sdk/lib-dynamodb'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Claim, type Claims, createClaims, numberOf } from '../../lib/claims.ts'
import { createSuspects, type Suspects } from '../../lib/suspects.ts'
import { createMemoryClaims } from '../fakes/claims.ts'
import { createMemoryTables } from '../fakes/tables.ts'
import { NOW } from '../lib/a-row.ts'
import { type LocalAws, openLocalAws } from './local-aws.ts'

type Opened = {
  make(now: () => number): Claims
  /** The suspects' details, by what they are about. */
  suspects(): Promise<Record<string, unknown>[]>
  judged(): Suspects
  /** Writes a claim as versions before the stamps did. */
  unstamped(claim: Claim): Promise<void>
  close(): Promise<void>
}

function defineClaimsContract(name: string, open: () => Promise<Opened>) {
  describe(`claims contract: ${name}`, () => {
    let opened: Opened
    let claims: Claims
    let now = NOW
    let count = 0
    // Each test has a cluster of its own, so that no claim of another is in its way.
    let cluster = ''
    let owner = ''
    let other = ''

    beforeAll(async () => {
      opened = await open()
      claims = opened.make(() => now)
    })
    beforeEach(() => {
      now = NOW
      cluster = `c${++count}`
      owner = `${cluster}-a`
      other = `${cluster}-b`
    })
    afterAll(() => opened.close())

    const takenBy = async (take: (owner: string) => Promise<boolean>, owners: number) => {
      const names = Array.from({ length: owners }, (_, index) => `${cluster}-${index}`)
      const results = await Promise.all(names.map(async (one) => ((await take(one)) ? one : undefined)))
      return results.filter((one) => one !== undefined)
    }

    /** The claim that is there for the asking. */
    async function taken(vmid: number, one = owner) {
      const claim = await claims.takeVmid(cluster, vmid, one)
      if (typeof claim === 'string') throw new Error(`${vmid} is ${claim}`)
      return claim
    }
    const numbersOf = async (one: string) =>
      (await claims.claimsOf(one)).flatMap((claim) => numberOf(claim) ?? [])
    const freeAll = async (one: string) => {
      for (const claim of await claims.claimsOf(one)) await claims.free(claim)
    }

    // Report: ionos-cloud/cluster-api-provider-proxmox#842
    it('gives a VMID to one of fifty who want it at once', async () => {
      const winners = await takenBy(
        async (one) => typeof (await claims.takeVmid(cluster, 5001, one)) === 'object',
        50,
      )
      expect(winners).toHaveLength(1)
      expect(await numbersOf(winners[0] ?? '')).toEqual([{ cluster, vmid: 5001 }])
    })

    it('gives a VMID once, also to its owner, who is told that it has it', async () => {
      expect(await claims.takeVmid(cluster, 5001, owner)).toMatchObject({ owner, sort: '5001' })
      expect(await claims.takeVmid(cluster, 5001, owner)).toBe('its own')
      expect(await claims.takeVmid(cluster, 5001, other)).toBe('another’s')
    })

    it('tells the claim on a VMID as it is', async () => {
      expect(await claims.vmidClaim(cluster, 5001)).toBeUndefined()
      const claim = await taken(5001)
      expect(await claims.vmidClaim(cluster, 5001)).toMatchObject(claim)
      expect(await claims.claimsOf(owner)).toMatchObject([claim])
    })

    it('frees a claim for those alone who saw it as it is', async () => {
      const first = await taken(5001)
      expect(await claims.free(first)).toBe(true)
      expect(await claims.free(first)).toBe(true)
      const second = await taken(5001)
      expect(await claims.free(first)).toBe(false)
      expect(await numbersOf(owner)).toEqual([{ cluster, vmid: 5001 }])
      expect(await claims.free(second)).toBe(true)
      await taken(5001, other)
      expect(await claims.free(second)).toBe(true)
      expect(await numbersOf(other)).toEqual([{ cluster, vmid: 5001 }])
    })

    it('stamps anew what is kept, for one of those who saw it', async () => {
      const seen = await taken(5001)
      const kept = await Promise.all(Array.from({ length: 20 }, () => claims.keep(seen)))
      const [claim, ...others] = kept.filter((one) => one !== undefined)
      if (!claim) throw new Error('nobody could keep it')
      expect(others).toEqual([])
      expect(await claims.free(seen)).toBe(false)
      expect(await claims.vmidClaim(cluster, 5001)).toMatchObject({ owner, stamp: claim.stamp })
      expect(await claims.free(claim)).toBe(true)
      expect(await claims.keep(claim)).toBeUndefined()
      expect(await claims.vmidClaim(cluster, 5001)).toBeUndefined()
    })

    it('frees and keeps a claim that an earlier version took, until it is stamped', async () => {
      for (const vmid of [5001, 5002])
        await opened.unstamped({ partition: `vmid#${cluster}`, sort: String(vmid), owner })
      const [first, second] = await claims.claimsOf(owner)
      if (!first || !second) throw new Error('two were there')
      expect(first.stamp).toBeUndefined()
      expect(await claims.free(first)).toBe(true)
      expect(await claims.keep(second)).toMatchObject({ stamp: expect.any(String) })
      expect(await claims.free(second)).toBe(false)
      expect(await claims.keep(second)).toBeUndefined()
    })

    describe('a VMID that is left to who deletes the VM there', () => {
      const keeper = () => `orphan#${cluster}#5001`
      const leave = (seen?: Awaited<ReturnType<typeof taken>>, whose = owner) =>
        claims.leaveVmid({ cluster, vmid: 5001 }, whose, keeper(), seen)

      it('stays its owner’s, where it was nobody’s as well', async () => {
        expect(await leave()).toBe(true)
        expect(await claims.claimsOf(owner)).toMatchObject([{ owner, leaving: keeper() }])
        expect(await claims.takeVmid(cluster, 5001, owner)).toBe('its own')
      })

      it('is left as it was seen, or not at all', async () => {
        const first = await taken(5001)
        expect(await leave()).toBe(false)
        await claims.free(first)
        expect(await leave(first)).toBe(false)
        const second = await taken(5001)
        expect(await leave(first)).toBe(false)
        expect(await leave(second)).toBe(true)
        expect(await claims.free(second)).toBe(false)
        expect(await claims.claimsOf(owner)).toMatchObject([{ leaving: keeper() }])
        await freeAll(owner)
        expect(await claims.claimsOf(owner)).toEqual([])
      })

      it('is nobody else’s; one that an earlier version gave to the keeper is its owner’s again', async () => {
        const others = await taken(5001, other)
        expect(await leave(others)).toBe(false)
        await claims.free(others)
        expect(await leave(await taken(5001, keeper()))).toBe(true)
        expect(await claims.claimsOf(owner)).toMatchObject([{ leaving: keeper() }])
        expect(await claims.claimsOf(keeper())).toEqual([])
      })
    })

    it('tells a number of one cluster from the same number of another', async () => {
      await claims.takeVmid(cluster, 5001, owner)
      expect(await claims.takeVmid(`${cluster}x`, 5001, other)).toMatchObject({ owner: other })
    })

    it('never lets a claim of a VMID lapse', async () => {
      await claims.takeVmid(cluster, 5001, owner)
      now += 1000 * 86_400_000
      expect(await claims.takeVmid(cluster, 5001, other)).toBe('another’s')
    })

    it('lists what an owner has, with the numbers of its VMIDs', async () => {
      await taken(5001)
      await taken(5002)
      await taken(5003, other)
      await claims.takeSlot(`clone#${cluster}#vmdata`, 2, owner)
      await claims.takeAgentTurn(cluster, 'pve1', owner)
      expect((await claims.claimsOf(owner)).map(({ partition }) => partition).sort()).toEqual([
        `agent#${cluster}#pve1`,
        `clone#${cluster}#vmdata`,
        `vmid#${cluster}`,
        `vmid#${cluster}`,
      ])
      expect((await numbersOf(owner)).sort((a, b) => a.vmid - b.vmid)).toEqual([
        { cluster, vmid: 5001 },
        { cluster, vmid: 5002 },
      ])
    })

    // Report: github-aws-runners/terraform-aws-github-runner#933
    it('gives as many slots as there are, to however many want one at once', async () => {
      const partition = `clone#${cluster}#vmdata`
      const winners = await takenBy((one) => claims.takeSlot(partition, 3, one), 20)
      expect(winners).toHaveLength(3)
      const [first = ''] = winners
      await claims.freeSlots(partition, first)
      expect(await claims.takeSlot(partition, 3, other)).toBe(true)
      expect(await claims.takeSlot(partition, 3, `${cluster}-late`)).toBe(false)
    })

    it('keeps one slot for an owner that asks again, and stamps it anew', async () => {
      const partition = `clone#${cluster}#vmdata`
      expect(await claims.takeSlot(partition, 2, owner)).toBe(true)
      const [seen] = await claims.claimsOf(owner)
      if (!seen) throw new Error('it was taken')
      expect(await claims.takeSlot(partition, 2, owner)).toBe(true)
      expect(await claims.free(seen)).toBe(false)
      expect(await claims.takeSlot(partition, 2, owner)).toBe(true)
      expect(await claims.takeSlot(partition, 2, other)).toBe(true)
    })

    it('keeps a slot also where there are to be none any more, and gives out none', async () => {
      const partition = `spread#${cluster}#pve1#shop`
      expect(await claims.takeSlot(partition, 0, owner)).toBe(false)
      expect(await claims.takeSlot(partition, 1, owner)).toBe(true)
      expect(await claims.takeSlot(partition, 0, owner)).toBe(true)
      expect(await claims.takeSlot(partition, 0, other)).toBe(false)
    })

    it('tells who waits whether a slot is open, without taking it', async () => {
      const partition = `clone#${cluster}#vmdata`
      expect(await claims.queueForSlot(partition, 1, owner, now)).toBe('open')
      await claims.takeSlot(partition, 1, other)
      expect(await claims.queueForSlot(partition, 1, owner)).toBe('full')
      expect(await claims.queueForSlot(partition, 1, other, now)).toBe('open')
      await claims.freeSlots(partition, other)
      expect(await claims.queueForSlot(partition, 1, owner, now)).toBe('open')
    })

    it('leaves a slot to those who have waited at least half as long as the eldest', async () => {
      const partition = `clone#${cluster}#vmdata`
      const [elder, younger] = [`${cluster}-elder`, `${cluster}-younger`]
      await claims.takeSlot(partition, 1, owner)
      expect(await claims.queueForSlot(partition, 1, younger, now - 40_000)).toBe('eldest')
      expect(await claims.queueForSlot(partition, 1, elder, now - 100_000)).toBe('eldest')
      expect(await claims.queueForSlot(partition, 1, younger, now - 40_000)).toBe('full')
      await claims.freeSlots(partition, owner)
      expect(await claims.takeSlot(partition, 1, other)).toBe(false)
      expect(await claims.queueForSlot(partition, 1, younger, now - 40_000)).toBe('full')
      expect(await claims.takeSlot(partition, 1, younger, now - 40_000)).toBe(false)
      expect(await claims.takeSlot(partition, 2, other)).toBe(true)
      expect(await claims.takeSlot(partition, 2, `${cluster}-half`, now - 50_000)).toBe(true)
      expect(await claims.takeSlot(partition, 3, elder, now - 100_000)).toBe(true)
      // Who got in waits no longer.
      expect(await claims.takeSlot(partition, 4, younger, now - 40_000)).toBe(true)
    })

    it('leaves no slot to an eldest that asks no more', async () => {
      const partition = `clone#${cluster}#vmdata`
      await claims.takeSlot(partition, 1, owner)
      await claims.queueForSlot(partition, 1, `${cluster}-elder`, now - 100_000)
      now += 8_000
      expect(await claims.queueForSlot(partition, 1, `${cluster}-elder`, now - 108_000)).toBe('eldest')
      await claims.freeSlots(partition, owner)
      now += 14_000
      expect(await claims.takeSlot(partition, 1, other)).toBe(false)
      now += 2_000
      expect(await claims.takeSlot(partition, 1, other)).toBe(true)
    })

    it('forgets an eldest with what else is given back', async () => {
      const partition = `clone#${cluster}#vmdata`
      await claims.takeSlot(partition, 1, owner)
      await claims.queueForSlot(partition, 1, `${cluster}-elder`, now - 100_000)
      await freeAll(`${cluster}-elder`)
      await claims.freeSlots(partition, owner)
      expect(await claims.takeSlot(partition, 1, other)).toBe(true)
    })

    it('gives back the slots of one queue and of one owner only', async () => {
      const [here, there] = [`clone#${cluster}#vmdata`, `clone#${cluster}#other`]
      await claims.takeSlot(here, 1, owner)
      await claims.takeSlot(there, 1, owner)
      await claims.freeSlots(here, other)
      expect(await claims.takeSlot(here, 1, other)).toBe(false)
      await claims.freeSlots(here, owner)
      expect(await claims.takeSlot(here, 1, other)).toBe(true)
      expect(await claims.takeSlot(there, 1, other)).toBe(false)
    })

    it('lets one guest of a node be asked at a time, and takes the turn of who forgot to give it back', async () => {
      expect(await claims.takeAgentTurn(cluster, 'pve1', owner)).toBe(true)
      expect(await claims.takeAgentTurn(cluster, 'pve1', other)).toBe(false)
      expect(await claims.takeAgentTurn(cluster, 'pve2', other)).toBe(true)
      now += 30_001
      expect(await claims.takeAgentTurn(cluster, 'pve1', other)).toBe(true)
      await claims.freeAgentTurn(cluster, 'pve1', owner)
      expect(await claims.takeAgentTurn(cluster, 'pve1', owner)).toBe(false)
      await claims.freeAgentTurn(cluster, 'pve1', other)
      expect(await claims.takeAgentTurn(cluster, 'pve1', owner)).toBe(true)
    })

    it('gives a lapsed turn to one of fifty', async () => {
      await claims.takeAgentTurn(cluster, 'pve1', owner)
      now += 30_001
      expect(await takenBy((one) => claims.takeAgentTurn(cluster, 'pve1', one), 50)).toHaveLength(1)
    })

    // Report: ionos-cloud/cluster-api-provider-proxmox#763
    it('gives an address to one of fifty who want it at once, and tells the others whose it is', async () => {
      const names = Array.from({ length: 50 }, (_, index) => `${cluster}-${index}`)
      const holders = await Promise.all(names.map((one) => claims.takeAddress(cluster, '10.0.0.7', one)))
      expect(new Set(holders).size).toBe(1)
      expect(names).toContain(holders[0])
      expect(await claims.takeAddress(`${cluster}x`, '10.0.0.7', other)).toBe(other)
      expect(await claims.takeAddress(cluster, '10.0.0.8', other)).toBe(other)
    })

    it('frees an address as it was seen, and never by time', async () => {
      await claims.takeAddress(cluster, '10.0.0.7', owner)
      const [seen] = await claims.claimsOf(owner)
      if (!seen) throw new Error('it was taken')
      now += 1000 * 86_400_000
      expect(await claims.takeAddress(cluster, '10.0.0.7', other)).toBe(owner)
      await claims.takeAddress(cluster, '10.0.0.7', owner)
      expect(await claims.free(seen)).toBe(false)
      await freeAll(owner)
      expect(await claims.takeAddress(cluster, '10.0.0.7', other)).toBe(other)
    })

    it('gives back whatever an owner has, one by one', async () => {
      await claims.takeVmid(cluster, 5001, owner)
      await claims.takeSlot(`clone#${cluster}#vmdata`, 1, owner)
      await claims.takeSlot(`zone#${cluster}`, 1, owner)
      await claims.takeAgentTurn(cluster, 'pve1', owner)
      await claims.takeAddress(cluster, '10.0.0.7', owner)
      await freeAll(owner)
      expect(await claims.claimsOf(owner)).toEqual([])
      expect(await claims.takeAddress(cluster, '10.0.0.7', other)).toBe(other)
      expect(await claims.takeSlot(`clone#${cluster}#vmdata`, 1, other)).toBe(true)
      expect(await claims.takeSlot(`zone#${cluster}`, 1, other)).toBe(true)
      expect(await claims.takeAgentTurn(cluster, 'pve1', other)).toBe(true)
      await taken(5001, other)
    })

    it('notes a suspect, which is nobody’s claim', async () => {
      const detail = { kind: 'seed', cluster, node: 'pve3', volume: 'local:iso/x.iso', uid: owner }
      await claims.suspect(`seed#${cluster}`, detail)
      await claims.suspect(`seed#${cluster}`, detail)
      const mine = (await opened.suspects()).filter((one) => one.cluster === cluster)
      expect(mine).toEqual([expect.objectContaining(detail)])
      await freeAll(owner)
      expect((await opened.suspects()).filter((one) => one.cluster === cluster)).toHaveLength(1)
    })

    describe('a suspect', () => {
      const DAY_MS = 86_400_000
      const mine = async () => (await opened.suspects()).filter((one) => one.cluster === cluster)
      const note = () => claims.suspect(`seed#${cluster}`, { kind: 'seed', cluster })
      const asNoted = () => ({ key: `seed#${cluster}`, firstSeen: NOW })

      it('keeps its first look, until it has expired', async () => {
        await note()
        now += 13 * DAY_MS
        await note()
        expect(await mine()).toEqual([expect.objectContaining({ firstSeen: NOW })])
        now += 2 * DAY_MS
        await note()
        expect(await mine()).toEqual([expect.objectContaining({ firstSeen: now })])
      })

      it('is one, however many note it at once', async () => {
        await Promise.all(Array.from({ length: 10 }, note))
        expect(await mine()).toHaveLength(1)
      })

      it('is put off for as long as it is the same look', async () => {
        await note()
        now += 10 * DAY_MS
        await opened.judged().keep({ ...asNoted(), firstSeen: NOW + 1 })
        expect(await mine()).toEqual([expect.objectContaining({ purgeAt: NOW / 1000 + 14 * 86_400 })])
        await opened.judged().keep(asNoted())
        expect(await mine()).toEqual([
          expect.objectContaining({ firstSeen: NOW, purgeAt: now / 1000 + 14 * 86_400 }),
        ])
      })

      it('is cleared by those who saw the same look alone', async () => {
        await note()
        await opened.judged().clear({ ...asNoted(), firstSeen: NOW + 1 })
        expect(await mine()).toHaveLength(1)
        await opened.judged().clear(asNoted())
        await opened.judged().clear(asNoted())
        await opened.judged().keep(asNoted())
        expect(await mine()).toEqual([])
      })
    })
  })
}

defineClaimsContract('in memory', async () => {
  let fake: ReturnType<typeof createMemoryClaims> | undefined
  return {
    make: (now) => {
      fake = createMemoryClaims(now)
      return fake
    },
    suspects: async () => fake?.suspects() ?? [],
    judged() {
      if (!fake) throw new Error('made before')
      return fake.judged
    },
    unstamped: async (claim) => fake?.put(claim),
    close: async () => {},
  }
})

defineClaimsContract('on tables in memory', async () => {
  const { client, items } = createMemoryTables({ claims: { partition: 'partition', sort: 'sort' } })
  let clock = Date.now
  return {
    make(now) {
      clock = now
      return createClaims({ client, table: 'claims', now })
    },
    judged: () => createSuspects({ client, table: 'claims', now: clock }),
    suspects: async () => [...items('claims').values()].filter(({ partition }) => partition === 'suspect'),
    unstamped: async (claim) =>
      void (await client.send(new PutCommand({ TableName: 'claims', Item: claim }))),
    close: async () => {},
  }
})

defineClaimsContract('on tables', async () => {
  const aws: LocalAws = await openLocalAws()
  const table = aws.emulators.tables.claims
  let clock = Date.now
  return {
    make(now) {
      clock = now
      return createClaims({ client: aws.tables, table, now })
    },
    judged: () => createSuspects({ client: aws.tables, table, now: clock }),
    async suspects() {
      const { Items: items = [] } = await aws.tables.send(
        new QueryCommand({
          TableName: table,
          ConsistentRead: true,
          KeyConditionExpression: '#partition = :suspect',
          ExpressionAttributeNames: { '#partition': 'partition' },
          ExpressionAttributeValues: { ':suspect': 'suspect' },
        }),
      )
      return items
    },
    unstamped: async (claim) =>
      void (await aws.tables.send(new PutCommand({ TableName: table, Item: claim }))),
    close: () => aws.close(),
  }
})
