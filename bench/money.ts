import { readFileSync } from 'node:fs'
import { marshall } from '@aws-sdk/util-dynamodb'
import { tables } from '../local/resources.ts'
import { AWS_WAYS } from './conditions.ts'
import { feed, type Invoked } from './feed.ts'
import { openInstallation } from './installation.ts'
import { itemBytes, projected } from './item-size.ts'
import { onEmulators } from './on-emulators.ts'
import { HOURS_A_MONTH, prices, SECONDS_A_MONTH } from './prices.ts'
import { openRealTime } from './real-time.ts'
import { EXACT, type Part, type Sheet, TIMED } from './report.ts'
import { sum } from './statistics.ts'
import type { Tally } from './wire.ts'

/** As serverless.yml has them: memory, and with it the share of a core. Source: 1,769 MB are one vCPU. */
const MEMORY_MIB = 512
const CORE = MEMORY_MIB / 1769
/** Lines the functions log of a record at level info, and what CloudWatch adds to each. */
const LOG_BYTES_A_RECORD = 350
const TOGETHER = 10
const DAYS_A_MONTH = 30.4
/** gc and check, every five minutes each; a run of a small installation takes about this long. */
const RUNS_A_MONTH = SECONDS_A_MONTH / 300
const RUN_SECONDS = 2

/** What a life costs on AWS: counted at the wire between unmodified clients and the emulators. */
export const money: Part = {
  name: 'money',
  about: 'invocations, requests and units of a life, counted at the wire; dollars per 1,000; idle cost',
  async run(say) {
    say('CPU of a record')
    const pace = await onEmulators(60, 4)
    const cpuMs = pace.cpuMs / pace.records
    say('one life in real time, about 40 s')
    const alone = await countLives(1)
    say(`${TOGETHER} lives at once in real time, about 70 s`)
    const together = await countLives(TOGETHER)
    say('milliseconds in functions, on the virtual clock')
    const { invoked, readyBytes } = await lifeInFunctions()
    const waitMs = sum(invoked.map(({ ms }) => ms))
    const records = sum(invoked.map(({ records }) => records))
    const functionMs = waitMs + (records * cpuMs) / CORE
    const gbSeconds = (functionMs / 1000) * (MEMORY_MIB / 1024)

    const [one, ten] = [perLife(alone, 1), perLife(together, TOGETHER)]
    const bill = billOf(one, gbSeconds)
    const dollars = 1000 * sum(bill.map(([, , cost]) => cost))
    const idle = idleCosts()
    const turns = one.received
    return {
      sheets: [
        countedSheet(one, ten),
        {
          title: 'Milliseconds of a life in functions',
          head: ['', 'ms'],
          rows: [
            ['waiting for AWS and Proxmox (virtual clock, ways of bench/conditions.ts)', waitMs],
            [
              `CPU ${cpuMs.toFixed(1)} ms a record on this machine, at ${CORE.toFixed(2)} of a core`,
              functionMs - waitMs,
            ],
            ['all', functionMs],
          ],
        },
        {
          title: 'Dollars per 1,000 proxies made and deleted, each alone (bench/prices.ts)',
          head: ['', 'a life', '$ per 1,000'],
          rows: [
            ...bill.map(([name, amount, cost]) => [name, amount, cents(1000 * cost)]),
            ['all', '', cents(dollars)],
          ],
        },
        {
          title: 'Idle, dollars a month',
          head: ['', 'how many', '$ a month'],
          rows: [
            ...idle.map(([name, amount, cost]) => [name, amount, cents(cost)]),
            ['all', '', cents(sum(idle.map(([, , cost]) => cost)))],
          ],
        },
        {
          title: `With so many lives a day of a day each, dollars a month; a ready row is ${readyBytes.index} bytes in the index, ${readyBytes.row} in the table`,
          head: ['lives a day', 'lives', 'gc reads', 'check reads', 'idle', 'all'],
          rows: [10, 100, 1000, 10_000].map((lives) => {
            const use = (lives * DAYS_A_MONTH * dollars) / 1000
            // Half a unit for 4 KiB of an index, and half a unit for each row that is read by its key.
            const index = (lives * readyBytes.index) / 4096 / 2
            const byKey = (lives * Math.ceil(readyBytes.row / 4096)) / 2
            const gc = index * RUNS_A_MONTH * prices.readUnit
            const check = (index + byKey) * RUNS_A_MONTH * prices.readUnit
            const still = sum(idle.map(([, , cost]) => cost))
            return [lives, cents(use), cents(gc), cents(check), cents(still), cents(use + gc + check + still)]
          }),
        },
      ],
      figures: [
        { name: 'invocations of a life alone', value: one.batches, unit: '', noise: 0.1 },
        { name: 'SQS requests of a life alone', value: one.sqs, unit: '', noise: 0.1 },
        { name: 'writes of the row a turn', value: one.rowWrites / turns, unit: '', noise: 0.05, aim: 2 },
        { name: 'write units of a life alone', value: one.units, unit: 'WRU', noise: 0.1 },
        { name: 'read units of a life alone', value: one.readUnits, unit: 'RRU', noise: 0.1 },
        { name: 'GB-seconds of a life', value: gbSeconds, unit: 'GB-s', noise: TIMED },
        { name: 'waiting in functions, a life', value: waitMs, unit: 'ms', noise: EXACT },
        { name: 'dollars per 1,000 lives', value: dollars, unit: '$', noise: 0.15 },
        {
          name: 'idle, VPN and endpoints included',
          value: sum(idle.map(([, , cost]) => cost)),
          unit: '$/month',
          noise: 0,
        },
      ],
      notes: [
        'Alone, every record is an invocation of its own: the upper bound. At once, up to ten share one.',
      ],
    }
  },
}

async function countLives(count: number): Promise<Tally> {
  const installation = await openRealTime()
  try {
    const uids = Array.from({ length: count }, (_, index) => `proxy-${index}`)
    installation.take()
    for (const uid of uids) {
      const spec = { zone: 'lab-1', image: 'debian-12' }
      await installation.publish('create', { type: 'ProxyRequested', uid, name: uid, spec })
    }
    await installation.reached(uids, 'Ready')
    for (const uid of uids) await installation.publish('delete', { type: 'ProxyDeletionRequested', uid })
    await installation.reached(uids, 'Deleted')
    return installation.take()
  } finally {
    await installation.close()
  }
}

/** A life alone under the ways of AWS: each invocation and how long it took, but for the CPU; and how large its row is that is ready. */
async function lifeInFunctions(): Promise<{
  invoked: Invoked[]
  readyBytes: { row: number; index: number }
}> {
  const ways = AWS_WAYS
  const installation = await openInstallation({ ways })
  const { lab, publishedAt } = installation
  try {
    lab.request('proxy-0')
    const made = await feed(installation, () => publishedAt.has('ProxyReady proxy-0'), { ways })
    await lab.clock.advance(1000)
    const item = marshall(lab.row('proxy-0'), { removeUndefinedValues: true })
    const byPhase = tables.proxies.indexes.find(({ IndexName }) => IndexName === 'byPhase')
    const inIndex = byPhase && projected(item, byPhase, tables.proxies.keys)
    const readyBytes = { row: itemBytes(item), index: itemBytes(inIndex) }
    lab.remove('proxy-0')
    const removed = await feed(installation, () => publishedAt.has('ProxyDeleted proxy-0'), { ways })
    return { invoked: [...made, ...removed], readyBytes }
  } finally {
    await installation.close()
  }
}

type PerLife = ReturnType<typeof perLife>

function perLife(tally: Tally, lives: number) {
  const { writeUnits } = tally
  const share = (value: number) => value / lives
  return {
    batches: share(tally.batches),
    received: share(tally.received),
    sqs: share(sum(Object.values(tally.sqs))),
    sqsBy: Object.fromEntries(Object.entries(tally.sqs).map(([name, count]) => [name, share(count)])),
    sns: share(tally.sns),
    dynamodbBy: Object.fromEntries(
      Object.entries(tally.dynamodb).map(([name, count]) => [name, share(count)]),
    ),
    rowWrites: share(tally.rowWrites),
    units: share(writeUnits.table + writeUnits.indexes + writeUnits.claims),
    tableUnits: share(writeUnits.table),
    indexUnits: share(writeUnits.indexes),
    claimUnits: share(writeUnits.claims),
    readUnits: share(tally.readUnits),
    failedConditions: share(tally.failedConditions),
  }
}

function countedSheet(one: PerLife, ten: PerLife): Sheet {
  const calls = (of: (life: PerLife) => Record<string, number>, prefix: string) =>
    [...new Set([...Object.keys(of(one)), ...Object.keys(of(ten))])]
      .sort()
      .map((name) => [`${prefix} ${name}`, of(one)[name] ?? 0, of(ten)[name] ?? 0])
  return {
    title: 'Of one life, made and deleted, at the wire',
    head: ['', 'alone', `${TOGETHER} at once`],
    rows: [
      ['invocations', one.batches, ten.batches],
      ['records', one.received, ten.received],
      ...calls(({ sqsBy }) => sqsBy, 'SQS'),
      ['SNS Publish', one.sns, ten.sns],
      ...calls(({ dynamodbBy }) => dynamodbBy, 'DynamoDB'),
      ['  writes of the row', one.rowWrites, ten.rowWrites],
      ['  conditions that failed', one.failedConditions, ten.failedConditions],
      ['write units: rows', one.tableUnits, ten.tableUnits],
      ['write units: their indexes', one.indexUnits, ten.indexUnits],
      ['write units: claims and their index', one.claimUnits, ten.claimUnits],
      ['read units', one.readUnits, ten.readUnits],
    ],
  }
}

type Line = [name: string, amount: number, dollars: number]

function billOf(life: PerLife, gbSeconds: number): Line[] {
  const logBytes = life.received * LOG_BYTES_A_RECORD
  return [
    ['Lambda invocations', life.batches, life.batches * prices.lambdaRequest],
    ['Lambda GB-seconds', gbSeconds, gbSeconds * prices.lambdaGbSecond],
    ['SQS requests', life.sqs, life.sqs * prices.sqsRequest],
    ['DynamoDB write units', life.units, life.units * prices.writeUnit],
    ['DynamoDB read units', life.readUnits, life.readUnits * prices.readUnit],
    ['SNS publishes', life.sns, life.sns * prices.snsPublish],
    ['log bytes', logBytes, (logBytes / 1e9) * prices.logGb],
  ]
}

/**
 * What stands there whether or not anybody wants a proxy. Lambda keeps five long polls of 20 s open on each queue.
 * Source: AWS Lambda, "Using Lambda with Amazon SQS".
 */
function idleCosts(): Line[] {
  const [alarms, endpoints] = [
    countIn('../infra/alarms.yml', /AWS::CloudWatch::(?:Composite)?Alarm/g),
    // One is a gateway, which costs nothing.
    countIn('../infra/network/vpn.yml', /AWS::EC2::VPCEndpoint$/gm) - 1,
  ]
  const polls = 2 * 5 * (SECONDS_A_MONTH / 20)
  const zones = 2
  return [
    ['SQS requests of empty polls', polls, polls * prices.sqsRequest],
    [
      'runs of gc and check',
      2 * RUNS_A_MONTH,
      2 * RUNS_A_MONTH * (prices.lambdaRequest + RUN_SECONDS * (MEMORY_MIB / 1024) * prices.lambdaGbSecond),
    ],
    ['alarms', alarms, alarms * prices.alarmMonth],
    ['site-to-site VPN', 1, HOURS_A_MONTH * prices.vpnHour],
    [
      `interface endpoints, in ${zones} zones each`,
      endpoints,
      endpoints * zones * HOURS_A_MONTH * prices.endpointHour,
    ],
  ]
}

const countIn = (path: string, pattern: RegExp) =>
  [...readFileSync(new URL(path, import.meta.url), 'utf8').matchAll(pattern)].length

const cents = (dollars: number) => (dollars < 1 ? dollars.toFixed(4) : dollars.toFixed(2))
