/**
 * What serverless.yml reads as `custom.settings`. JavaScript because the deployment tool loads nothing else; all there is to
 * it is in settings.ts.
 */
export const settings = async ({ resolveVariable }) => {
  const { readSettings } = await import('./settings.ts')
  try {
    return readSettings(process.cwd(), await resolveVariable('sls:stage'))
  } catch (error) {
    // The tool prints stacks; who wrote a file wrongly has no use for one.
    if (error.name === 'ConfigError') error.stack = `\n${error.message}`
    throw error
  }
}
