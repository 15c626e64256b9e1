import { type Call, callsOf } from './calls.ts'

/**
 * On what each call in our files is made: `action resource`, resources by their logical ids. `own:` stands for the function's
 * own queue or dead letters. A call of a file that is not here fails the test that derives permissions from it.
 */
const CALLS: Record<string, Record<string, { action: string; on: string[] }>> = {
  'lib/ledger.ts': {
    GetCommand: { action: 'dynamodb:GetItem', on: ['ProxiesTable'] },
    PutCommand: { action: 'dynamodb:PutItem', on: ['ProxiesTable'] },
    UpdateCommand: { action: 'dynamodb:UpdateItem', on: ['ProxiesTable'] },
  },
  // The read after a lost condition, of rows as well as of claims.
  'lib/conditional.ts': { GetCommand: { action: 'dynamodb:GetItem', on: ['ProxiesTable', 'ClaimsTable'] } },
  'lib/user-data.ts': {
    GetCommand: { action: 'dynamodb:GetItem', on: ['ProxiesTable'] },
    PutCommand: { action: 'dynamodb:PutItem', on: ['ProxiesTable'] },
    DeleteCommand: { action: 'dynamodb:DeleteItem', on: ['ProxiesTable'] },
  },
  'lib/listing.ts': {
    GetCommand: { action: 'dynamodb:GetItem', on: ['ProxiesTable'] },
    QueryCommand: {
      action: 'dynamodb:Query',
      on: ['ProxiesTable/index/byNode', 'ClaimsTable'],
    },
  },
  'lib/rows-in-phase.ts': { QueryCommand: { action: 'dynamodb:Query', on: ['ProxiesTable/index/byPhase'] } },
  'lib/batch-get.ts': { BatchGetCommand: { action: 'dynamodb:BatchGetItem', on: ['ProxiesTable'] } },
  'lib/claims.ts': {
    GetCommand: { action: 'dynamodb:GetItem', on: ['ClaimsTable'] },
    PutCommand: { action: 'dynamodb:PutItem', on: ['ClaimsTable'] },
    DeleteCommand: { action: 'dynamodb:DeleteItem', on: ['ClaimsTable'] },
    QueryCommand: { action: 'dynamodb:Query', on: ['ClaimsTable', 'ClaimsTable/index/byOwner'] },
  },
  'lib/slots.ts': { PutCommand: { action: 'dynamodb:PutItem', on: ['ClaimsTable'] } },
  'lib/suspects.ts': {
    PutCommand: { action: 'dynamodb:PutItem', on: ['ClaimsTable'] },
    UpdateCommand: { action: 'dynamodb:UpdateItem', on: ['ClaimsTable'] },
    DeleteCommand: { action: 'dynamodb:DeleteItem', on: ['ClaimsTable'] },
  },
  'lib/inventory.ts': {
    ScanCommand: { action: 'dynamodb:Scan', on: ['ClaimsTable'] },
  },
  'lib/reports.ts': {
    GetCommand: { action: 'dynamodb:GetItem', on: ['ClaimsTable'] },
    PutCommand: { action: 'dynamodb:PutItem', on: ['ClaimsTable'] },
  },
  'lib/queue.ts': {
    SendMessageCommand: { action: 'sqs:SendMessage', on: ['CreateQueue', 'DeleteQueue', 'own:DeadLetters'] },
    ChangeMessageVisibilityCommand: { action: 'sqs:ChangeMessageVisibility', on: ['own:Queue'] },
  },
  'lib/topic.ts': { PublishCommand: { action: 'sns:Publish', on: ['OutcomeTopic'] } },
  'lib/secrets.ts': { GetParameterCommand: { action: 'ssm:GetParameter', on: ['tokens', 'passwords'] } },
}

/** In a bundle, but never called by its function. */
const NEVER: Record<string, Record<string, string>> = {
  create: { 'dynamodb:DeleteItem ProxiesTable': 'userData goes with the tombstone, which `release` makes' },
  delete: {
    'dynamodb:Query ProxiesTable/index/byNode': 'only `reserve` counts',
    'ssm:GetParameter passwords': 'only `seed` reads the password of a proxy',
  },
  check: {
    'dynamodb:Query ClaimsTable/index/byOwner': 'it asks for whole partitions',
    'sqs:SendMessage CheckDeadLetters': 'it has no queue',
    'sqs:ChangeMessageVisibility CheckQueue': 'it has no queue',
  },
  gc: {
    'dynamodb:GetItem ProxiesTable':
      'it writes no row, so it loses no race for one, and reads them in batches',
    'dynamodb:Query ClaimsTable/index/byOwner': 'it reads all claims anyway',
    'sqs:SendMessage GcDeadLetters': 'it has no queue',
    'sqs:ChangeMessageVisibility GcQueue': 'it has no queue',
    'ssm:GetParameter passwords': 'only `seed` reads the password of a proxy',
  },
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1)

/** Everything a function needs: what its code calls, and what Lambda does for it. */
export async function needsOf(
  room: string,
  fed: boolean,
): Promise<{ needs: Set<string>; unknown: string[] }> {
  const { calls, indexes } = await callsOf(room)
  const unknown: string[] = []
  const needs = new Set<string>()
  const shaken = (resource: string, file: string) => {
    const index = resource.split('/index/')[1]
    return index !== undefined && !indexes.some((one) => one.file === file && one.index === index)
  }
  const known = ({ file, command }: Call) => CALLS[file]?.[command]
  for (const call of calls) {
    const found = known(call)
    if (!found) unknown.push(`${call.file} calls ${call.command}: on what?`)
    for (const resource of found?.on ?? [])
      if (!shaken(resource, call.file))
        needs.add(`${found?.action} ${resource.replace('own:', capital(room))}`)
  }
  for (const { file, index } of indexes)
    if (
      !Object.values(CALLS[file] ?? {}).some(({ on }) =>
        on.some((resource) => resource.endsWith(`/index/${index}`)),
      )
    )
      unknown.push(`${file} reads the index ${index}: of what?`)
  for (const never of Object.keys(NEVER[room] ?? {}))
    if (!needs.delete(never))
      unknown.push(`${room} has no ${never} in its bundle any more: it need not be named`)
  if (fed)
    for (const action of ['ReceiveMessage', 'DeleteMessage', 'GetQueueAttributes'])
      needs.add(`sqs:${action} ${capital(room)}Queue`)
  for (const action of ['CreateLogStream', 'PutLogEvents'])
    needs.add(`logs:${action} ${capital(room)}LogGroup`)
  return { needs, unknown }
}
