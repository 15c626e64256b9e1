import * as z from 'zod'

const Failures = z.object({
  batchItemFailures: z
    .array(z.object({ itemIdentifier: z.string().min(1) }))
    .nullish()
    .transform((list) => list ?? []),
})

/**
 * What of a batch is done and may be deleted, by the answer of a function that reports partial failures. No answer or an
 * empty list means all of it; an answer that cannot be read, or names a message that was not in the batch, none of it.
 * Source: AWS Lambda, "Implementing partial batch responses", success and failure conditions.
 */
export function succeeded(answer: unknown, messageIds: readonly string[]): string[] {
  if (answer === null || answer === undefined) return [...messageIds]
  const parsed = Failures.safeParse(answer)
  if (!parsed.success) return []
  const failed = new Set(parsed.data.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
  const known = new Set(messageIds)
  if ([...failed].some((id) => !known.has(id))) return []
  return messageIds.filter((id) => !failed.has(id))
}
