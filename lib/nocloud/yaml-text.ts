import { Document, Scalar } from 'yaml'

/**
 * YAML that cloud-init's parser reads back as exactly this value.
 *
 * Strings are always quoted: that parser speaks YAML 1.1, to which `on`, `1_0` and `12:30` are no strings.
 */
export function yamlText(value: Record<string, unknown>): string {
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false })
  return document.toString({
    lineWidth: 0,
    defaultStringType: Scalar.QUOTE_DOUBLE,
    defaultKeyType: Scalar.PLAIN,
    directives: false,
  })
}

/** A cloud-config document, with the first line by which cloud-init knows one. */
export function cloudConfig(value: Record<string, unknown>): string {
  return '#cloud-config\n' + yamlText(value)
}
