const year = "[12]\\d{3}";
const date = `${year}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))`;
const clock = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?";
const zone = "(?:Z|[+-](?:0\\d|1[0-3]):[0-5]\\d)";
const byte = "(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])";
const group = "[0-9a-f]{1,4}";
const label = "[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?";
const domain = `${label}(?:\\.${label}){0,4}`;

/** What texts of a format may look like: each of these is one, though not each of them is here. */
export const formatPatterns: Readonly<Record<string, string>> = {
  date: `^${date}$`,
  time: `^${clock}${zone}$`,
  "date-time": `^${date}T${clock}Z$`,
  duration: "^P(?:\\d{1,4}W|\\d{1,4}D(?:T\\d{1,4}H)?|T(?:\\d{1,4}H)?\\d{1,4}M|T\\d{1,4}S)$",
  email: `^[a-z0-9_+-]{1,30}(?:\\.[a-z0-9_+-]{1,30}){0,3}@(?:${label}\\.){1,3}[a-z]{2,10}$`,
  hostname: `^${domain}$`,
  ipv4: `^${byte}(?:\\.${byte}){3}$`,
  ipv6: `^${group}(?::${group}){7}$`,
  uuid: "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
  uri: "^https?://(?:[a-z]{1,12}\\.){1,3}[a-z]{2,6}(?::[1-9]\\d{0,3})?(?:/[A-Za-z0-9._~-]{0,40}){0,8}(?:\\?[A-Za-z0-9._~=&-]{0,80})?$",
};
