import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb'

/**
 * The tables, queues and the topic of an installation, as plain data: `egress up` makes its emulated ones from it, and the
 * templates for AWS are compared with it, so that both are the same.
 */

export type TableShape = {
  keys: NonNullable<CreateTableCommandInput['KeySchema']>
  attributes: NonNullable<CreateTableCommandInput['AttributeDefinitions']>
  indexes: NonNullable<CreateTableCommandInput['GlobalSecondaryIndexes']>
  /** Epoch seconds after which an item may go. Judged in code too: AWS removes late, an emulator never. */
  ttlAttribute: string
}

export const tables = {
  /** Rows by uid. Items without a phase (userData, blank rows) are in no index. */
  proxies: {
    keys: [{ AttributeName: 'uid', KeyType: 'HASH' }],
    attributes: [
      { AttributeName: 'uid', AttributeType: 'S' },
      { AttributeName: 'phase', AttributeType: 'S' },
      { AttributeName: 'createdAt', AttributeType: 'N' },
      { AttributeName: 'placedOn', AttributeType: 'S' },
    ],
    indexes: [
      {
        IndexName: 'byPhase',
        KeySchema: [
          { AttributeName: 'phase', KeyType: 'HASH' },
          { AttributeName: 'createdAt', KeyType: 'RANGE' },
        ],
        // What a row accounts for in the world, which changes seldom: an index that shows how far it is would be written
        // with each step.
        Projection: {
          ProjectionType: 'INCLUDE',
          NonKeyAttributes: ['wish', 'place', 'seed', 'seededOn', 'orphanOf', 'expiresAt'],
        },
      },
      {
        IndexName: 'byNode',
        KeySchema: [{ AttributeName: 'placedOn', KeyType: 'HASH' }],
        Projection: { ProjectionType: 'KEYS_ONLY' },
      },
    ],
    ttlAttribute: 'purgeAt',
  },
  claims: {
    keys: [
      { AttributeName: 'partition', KeyType: 'HASH' },
      { AttributeName: 'sort', KeyType: 'RANGE' },
    ],
    attributes: [
      { AttributeName: 'partition', AttributeType: 'S' },
      { AttributeName: 'sort', AttributeType: 'S' },
      { AttributeName: 'owner', AttributeType: 'S' },
    ],
    indexes: [
      {
        IndexName: 'byOwner',
        KeySchema: [
          { AttributeName: 'owner', KeyType: 'HASH' },
          { AttributeName: 'partition', KeyType: 'RANGE' },
        ],
        Projection: { ProjectionType: 'ALL' },
      },
    ],
    ttlAttribute: 'purgeAt',
  },
} as const satisfies Record<string, TableShape>
export type TableId = keyof typeof tables

const DAY_SECONDS = 86_400

/** Queues that feed a function; each has dead letters called `<name>-dlq`. What they are like stands in infra/queues.yml. */
export const sources = ['create', 'delete'] as const
export type SourceId = (typeof sources)[number]

export const outcomes = {
  topic: 'egress-outcomes',
  /** A standing subscriber that keeps what was published, for `egress events --take`. */
  queue: { name: 'egress-events', retentionSeconds: DAY_SECONDS },
} as const
