import { setQuery } from "../../data/location.js";

const columns: readonly { name: string; sort?: string; isNumber?: boolean; class?: string }[] = [
  { name: "Name", sort: "name" },
  { name: "Model", sort: "model", class: "wide-only" },
  { name: "State", sort: "state" },
  { name: "Step", sort: "-step", isNumber: true },
  { name: "Loss", sort: "nll.last", isNumber: true },
  { name: "Reward", sort: "-reward.last", isNumber: true },
  { name: "Tok/s", isNumber: true, class: "wide-only" },
  { name: "Curve", class: "curve" },
  { name: "Changed", sort: "-updated", isNumber: true },
];

/** The names of the columns; a click sorts, another turns the order round. */
export function HeaderRow({ sort }: { readonly sort: string }) {
  return (
    <div class="run-row header" role="row">
      <span role="columnheader">
        <span class="unseen">Selected</span>
      </span>
      {columns.map(({ name, sort: own, isNumber, class: more = "" }) => {
        const isOwn = own !== undefined && sort.replace(/^-/, "") === own.replace(/^-/, "");
        const isDown = sort.startsWith("-");
        const order = isOwn ? (isDown ? "descending" : "ascending") : undefined;
        return (
          <span
            key={name}
            role="columnheader"
            aria-sort={order}
            class={`${isNumber ? "number" : ""} ${more}`}
          >
            {own ? (
              <button
                type="button"
                class="sort"
                onClick={() =>
                  setQuery({ sort: isOwn ? (isDown ? sort.slice(1) : `-${sort}`) : own })
                }
              >
                {name}
                {isOwn && <span aria-hidden="true">{isDown ? " ↓" : " ↑"}</span>}
              </button>
            ) : (
              name
            )}
          </span>
        );
      })}
    </div>
  );
}
