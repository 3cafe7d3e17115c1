import { defineCommand } from "../../command.js";
import { collectPages } from "../../connect/collect-pages.js";
import { withService } from "../../connect/with-service.js";
import { listOptions, scopeOptions } from "../../parse/list-options.js";
import { listTitle } from "../../present/list-title.js";

/** `session list` */
export const command = defineCommand({
  summary: "List sessions, newest first.",
  options: { ...listOptions, ...scopeOptions },
  arguments: {},
  async run(context, { options: { limit, offset, accessScope } }) {
    const { items } = await withService(context, ({ rest, bounds }) =>
      collectPages(
        async (size, start) => {
          const page = await rest.listSessions({
            limit: size,
            offset: start,
            accessScope,
            ...bounds,
          });
          return { items: page.sessions, totalCount: undefined };
        },
        { limit, offset, pageSize: 100 },
      ),
    );
    context.output.result({
      json: () => ({ sessions: items }),
      table: () => ({
        title: listTitle("session", items.length),
        headers: ["Session ID"],
        rows: items.map((id) => [id]),
      }),
    });
  },
});
