import { setTimeout as pause } from 'node:timers/promises'
import { SendMessageCommand } from '@aws-sdk/client-sqs'
import { rowNow } from '../lib/listing.ts'
import type { Row } from '../lib/record.ts'
import { hashSpec } from '../lib/spec.ts'
import type { Up } from '../local/up.ts'
import type { Connection } from './connection.ts'
import type { Context } from './context.ts'
import { fetchThrough } from './fetch-through.ts'
import { deletionEnded, follow, requestEnded } from './follow.ts'
import { duration } from './format.ts'
import { showProgress } from './progress.ts'
import { requestBody } from './request-body.ts'
import { listRows } from './rows.ts'
import { Unmet } from './usage.ts'

export type Stage = { up: Up; connection: Connection; context: Context; signal: AbortSignal }

const NAME = 'hello'
/** As long as the longest of its steps may wait: real guests take minutes on a busy machine. */
const TIMEOUT_MS = 900_000

/** Shows the main job: one proxy from wish to a page fetched through it, or the one of an earlier start. @throws {Unmet} */
export async function demonstrate(stage: Stage): Promise<Row> {
  const { up, context, signal } = stage
  const row = (await standing(stage)) ?? (await requestOne(stage))
  const { endpoint = '' } = row
  const page = up.run.page ?? ''
  const line = await firstLine(endpoint, page, signal)
  context.err(`\nA page through ${endpoint}:`)
  context.err(`  ${line}`)
  return row
}

/** How to go on from here. */
export function tellUse({ up, context }: Stage, { uid, endpoint = '' }: Row): void {
  const [zone] = Object.keys(up.config.zones)
  const lines = [
    '\nUse it:',
    `  curl -x ${endpoint} ${up.run.page}`,
    'Then, from another terminal in this folder:',
    '  npx egress list',
    `  npx egress get ${uid}`,
    `  npx egress request --name mine --zone ${zone} --image debian-12 --wait`,
    `  npx egress delete ${uid} --wait`,
  ]
  for (const line of lines) context.err(line)
}

/** Deletes the demonstration's proxies and sees that nothing of them is left, in the table and on the cluster. @throws {Unmet} */
export async function takeDown(stage: Stage): Promise<void> {
  const { connection, context, signal } = stage
  const table = connection.place('table')
  for (const { uid } of (await standingRows(stage)).filter(({ name }) => name === NAME)) {
    context.err(`\nDeleting ${uid}:`)
    await send(connection, 'deleteQueueUrl', { type: 'ProxyDeletionRequested', uid })
    const end = await showProgress('delete', screen(context), (onChange) =>
      follow({
        onChange,
        read: () => rowNow(connection.rows, table)(uid),
        ended: deletionEnded,
        timeoutMs: TIMEOUT_MS,
        signal,
      }),
    )
    if (end.kind === 'unmet') throw new Unmet(`${uid}: ${end.reason}`)
    const left = await leftOnCluster(stage, uid)
    if (left.length > 0)
      throw new Unmet(`${uid} is gone, but on the cluster there still is: ${left.join(', ')}`)
  }
  context.err('\nNothing of it is left: no VM, no disk, no seed.')
}

const standingRows = ({ connection }: Stage) =>
  listRows(connection.rows, connection.place('table'), [
    'Pending',
    'Provisioning',
    'Ready',
    'Failed',
    'Deleting',
  ])

/** The proxy of an earlier start: used as it is when Ready, waited for when it was under way. */
async function standing(stage: Stage): Promise<Row | undefined> {
  const rows = (await standingRows(stage)).filter(({ name, wish }) => name === NAME && wish === 'present')
  const row = rows.find(({ phase }) => phase === 'Ready') ?? rows.find(({ phase }) => phase !== 'Failed')
  if (!row?.specHash) return undefined
  stage.context.err(`\nThe proxy ${row.uid} of an earlier start is still there (${row.phase}).`)
  return row.phase === 'Ready' ? row : waitFor(stage, row.uid, row.generation, row.specHash)
}

async function requestOne(stage: Stage): Promise<Row> {
  const { config } = stage.up
  const [zone, { cluster } = { cluster: '' }] = Object.entries(config.zones)[0] ?? []
  const [image] = Object.keys(config.clusters[cluster]?.images ?? {})
  const body = requestBody({ name: NAME, zone, image }, config)
  stage.context.err(
    `\nAsking for a proxy, as \`egress request --name ${NAME} --zone ${zone} --image ${image}\` would:`,
  )
  await send(stage.connection, 'createQueueUrl', body)
  return waitFor(stage, body.uid, body.generation, hashSpec(body.name, body.spec))
}

async function waitFor(
  { connection, context, signal }: Stage,
  uid: string,
  generation: number,
  specHash: string,
): Promise<Row> {
  const table = connection.place('table')
  const end = await showProgress('create', screen(context), (onChange) =>
    follow({
      onChange,
      read: () => rowNow(connection.rows, table)(uid),
      ended: requestEnded({ generation, specHash }),
      timeoutMs: TIMEOUT_MS,
      signal,
    }),
  )
  if (end.kind === 'unmet' || !end.row)
    throw new Unmet(`${uid}: ${end.kind === 'unmet' ? end.reason : 'gone'}`)
  const { readyAt = 0, requestedAt } = end.row
  context.err(`${uid} is ready after ${duration(readyAt - requestedAt)}.`)
  return end.row
}

/** Machines that have only just been switched on again need a moment. */
async function firstLine(endpoint: string, page: string, signal: AbortSignal, tries = 20): Promise<string> {
  try {
    return await fetchThrough(endpoint, page, signal)
  } catch (error) {
    if (signal.aborted || tries <= 1) throw error
    await pause(1000, undefined, { signal })
    return firstLine(endpoint, page, signal, tries - 1)
  }
}

async function leftOnCluster({ up }: Stage, uid: string): Promise<string[]> {
  if (!up.run.sim) return []
  const lists = ['vms', 'volumes'].map(async (list) => {
    const answer = await fetch(`${up.run.sim?.admin}/${list}`)
    const things: unknown = await answer.json()
    return Array.isArray(things) ? things.map((thing) => JSON.stringify(thing)) : []
  })
  return (await Promise.all(lists)).flat().filter((text) => text.includes(uid))
}

async function send(
  { sqs, place }: Connection,
  queue: 'createQueueUrl' | 'deleteQueueUrl',
  body: object,
): Promise<void> {
  await sqs.send(new SendMessageCommand({ QueueUrl: place(queue), MessageBody: JSON.stringify(body) }))
}

const screen = ({ err, isTTY }: Context) => ({ line: err, isTTY })
