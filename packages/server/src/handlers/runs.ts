import type { SignedLinks } from "../auth/signed-links.js";
import type { Core } from "../core.js";
import { notFound } from "../errors/api-error.js";
import type { HandlersOf } from "../http/call.js";
import { auditLog } from "../rest/audit.js";
import { billingUsage, windowOf } from "../rest/billing.js";
import { isAccessible, pageOf } from "../rest/query.js";
import { getRun, listRuns, toTextMetadata } from "../rest/runs.js";

const traceLinkMs = 3_600_000;

/** Training runs, sessions, audit log and usage. */
export function runHandlers(
  { context, sessions }: Core,
  links: SignedLinks,
): HandlersOf<
  | "listTrainingRuns"
  | "getTrainingRun"
  | "listSessions"
  | "getSession"
  | "assignSessionProject"
  | "exportSessionTrace"
  | "getAuditLog"
  | "getBillingUsage"
> {
  const { store, clock } = context;
  const ownSession = (sessionId: string, owner: string) => {
    const session = store.sessions.get(sessionId);
    if (session?.owner !== owner) throw notFound(`session ${sessionId}`);
    return session;
  };

  return {
    listTrainingRuns({ caller, query }) {
      const filter = {
        owner: caller.owner,
        isAccessible: isAccessible(query),
        projectId: query["project_id"] ?? null,
      };
      return context.loop.run(caller.owner, listRuns(store, filter, pageOf(query, 20)));
    },

    getTrainingRun: ({ caller, query, params }) =>
      getRun(store, params["trainingRunId"] ?? "", caller.owner, isAccessible(query)),

    listSessions({ caller, query }) {
      isAccessible(query);
      const { limit, offset } = pageOf(query, 20);
      const list = store.sessions.list(caller.owner, limit, offset);
      return { sessions: list.map(({ sessionId }) => sessionId) };
    },

    getSession({ caller, query, params }) {
      isAccessible(query);
      const { sessionId, userMetadata, displayName, finish } = ownSession(
        params["sessionId"] ?? "",
        caller.owner,
      );
      return {
        userMetadata: toTextMetadata(userMetadata),
        displayName,
        finishReason: finish && { type: finish.reason },
        finishDetail: finish?.detail ?? null,
        trainingRunIds: store.models.bySession(sessionId).map(({ modelId }) => modelId),
        samplerIds: store.samplers.bySession(sessionId).map(({ samplerId }) => samplerId),
      };
    },

    async assignSessionProject({ caller, params, body }) {
      const { sessionId } = ownSession(params["sessionId"] ?? "", caller.owner);
      await store.write(() => store.sessions.assignProject(sessionId, body.projectId));
      if (sessions.isOpen(sessionId)) sessions.touch(sessionId, caller);
    },

    exportSessionTrace({ caller, params, origin }) {
      const { sessionId } = ownSession(params["sessionId"] ?? "", caller.owner);
      const link = links.sign(origin, { kind: "trace", subject: sessionId }, traceLinkMs);
      return { status: "ready", url: link.url };
    },

    getAuditLog: ({ caller, query }) => auditLog(store, caller.owner, query, clock.now()),

    getBillingUsage: ({ caller, query }) =>
      billingUsage(store, caller.owner, windowOf(query), clock.now()),
  };
}
