const paths = {
  runs: "M3 12.5 6.5 8l3 2.5L15 4M3 15.5h12",
  compare: "M3 13c3 0 4-8 12-8M3 8c5 0 6 5 12 5",
  playground: "M3 4h12v8H8l-3 3v-3H3z",
  checkpoints: "M9 2.5 15 6v6l-6 3.5L3 12V6zM3 6l6 3.5L15 6M9 9.5v6",
  machine:
    "M4.5 4.5h9v9h-9zM7 7h4v4H7zM7 2v2.5M11 2v2.5M7 13.5V16M11 13.5V16M2 7h2.5M2 11h2.5M13.5 7H16M13.5 11H16",
  system: "M9 3a6 6 0 1 0 0 12zM9 3a6 6 0 0 1 0 12",
  light:
    "M9 6a3 3 0 1 1 0 6 3 3 0 0 1 0-6M9 1.5V3M9 15v1.5M1.5 9H3M15 9h1.5M3.7 3.7l1 1M13.3 13.3l1 1M3.7 14.3l1-1M13.3 4.7l1-1",
  dark: "M14.5 11A6 6 0 0 1 7 3.5 6 6 0 1 0 14.5 11z",
  pin: "M6.5 2.5h5L11 8l2.5 2.5h-9L7 8zM9 10.5V16",
  copy: "M6.5 6.5h8v8h-8zM4 11.5H3v-8h8v1",
  close: "M4.5 4.5l9 9M13.5 4.5l-9 9",
  views: "M5 2.5h8v13L9 12.2 5 15.5z",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof paths;

/** A decorative icon of 18 points beside a label. */
export function Icon({ name, size = 18 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 18 18" aria-hidden="true">
      <path
        d={paths[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
