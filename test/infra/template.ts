/** A CloudFormation template, as far as tests look into it. */
export type Template = {
  Resources: Record<string, Resource>
  Outputs?: Record<string, { Value: unknown }>
  Conditions?: Record<string, unknown>
}
export type Resource = {
  Type: string
  // What a property holds is for each rule to know; a wrong guess is an undefined, which every rule complains of.
  // biome-ignore lint/suspicious/noExplicitAny: a foreign document of some hundred shapes
  Properties: Record<string, any>
  DependsOn?: string | string[]
  Condition?: string
  DeletionPolicy?: string
  UpdateReplacePolicy?: string
}

/** Those of a type that are made: what a condition leaves out is not there to hold anything. */
export function ofType(template: Template, type: string): [name: string, resource: Resource][] {
  return Object.entries(template.Resources).filter(
    ([, resource]) => resource.Type === type && isMade(template, resource),
  )
}

export const isMade = ({ Conditions = {} }: Template, { Condition }: Resource): boolean =>
  Condition === undefined || !(Condition in Conditions) || holds(Conditions[Condition])

/** Packaging has filled in everything but the words of CloudFormation. */
function holds(condition: unknown): boolean {
  // biome-ignore lint/suspicious/noExplicitAny: a condition function, of which only two are used here
  const { 'Fn::Not': not, 'Fn::Equals': equal } = condition as Record<string, any>
  if (not) return !holds(not[0])
  if (equal) return String(equal[0]) === String(equal[1])
  throw new Error(`a condition that is not known here: ${JSON.stringify(condition)}`)
}

/** The logical id that a reference leads to: `{Ref: X}`, `{Fn::GetAtt: [X, …]}`, or `${X}` at the start of a `Fn::Sub`. */
export function target(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if ('Ref' in value) return String(value.Ref)
  if ('Fn::GetAtt' in value) return String([value['Fn::GetAtt']].flat()[0])
  if ('Fn::Sub' in value) return /^\$\{(\w+)/.exec(String([value['Fn::Sub']].flat()[0]))?.[1]
  return undefined
}

/** Every value of a document, with the way to it. */
export function* walk(value: unknown, path: string[] = []): Generator<{ path: string[]; value: unknown }> {
  yield { path, value }
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, [...path, key])
}

export const list = <T>(value: T | T[] | undefined): T[] =>
  value === undefined ? [] : ([value].flat() as T[])
