import { type GetParameterCommand, ParameterNotFound, type SSMClient } from '@aws-sdk/client-ssm'

/** A parameter store in memory, for whoever reads one; its values are changed as a person would change them. */
export function createMemoryParameters(values: Record<string, string> = {}) {
  const kept = new Map(Object.entries(values))
  const send = async ({ input: { Name = '' } }: GetParameterCommand) => {
    const value = kept.get(Name)
    if (value === undefined) throw new ParameterNotFound({ message: Name, $metadata: {} })
    return { Parameter: { Name, Value: value } }
  }
  return {
    kept,
    // All of a client that lib/secrets.ts uses of it.
    client: { send } as unknown as SSMClient,
  }
}
export type MemoryParameters = ReturnType<typeof createMemoryParameters>
