import { DeleteCommand, type DynamoDBDocumentClient, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb'

/** A publisher's cloud-config, kept apart from the row: only `seed` reads it, and nothing logs it. */
export type UserDataStore = {
  put(uid: string, generation: number, userData: string): Promise<void>
  /** Undefined when it is not there, or is another generation's. */
  get(uid: string, generation: number): Promise<string | undefined>
  remove(uid: string): Promise<void>
}

/** In the table of the rows, under a key no event can name. */
export function createUserDataStore(client: DynamoDBDocumentClient, table: string): UserDataStore {
  const key = (uid: string) => ({ uid: `userdata#${uid}` })
  return {
    async put(uid, generation, userData) {
      await client.send(new PutCommand({ TableName: table, Item: { ...key(uid), generation, userData } }))
    },
    async get(uid, generation) {
      const { Item: item } = await client.send(
        new GetCommand({ TableName: table, Key: key(uid), ConsistentRead: true }),
      )
      return item?.generation === generation ? String(item.userData) : undefined
    },
    async remove(uid) {
      await client.send(new DeleteCommand({ TableName: table, Key: key(uid) }))
    },
  }
}
