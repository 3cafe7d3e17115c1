import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  API,
  SymbolFlags,
  type Checker,
  type Symbol as DeclaredSymbol,
  type Type,
} from "typescript/unstable/sync";

/** What an editor shows for a name and for each of its members. */
export interface HoverText {
  readonly name: string;
  readonly text: string;
  readonly members: ReadonlyMap<string, MemberText>;
}

/** What an editor shows for a member. */
export interface MemberText {
  readonly text: string;
  /** The text of its `@default`. */
  readonly default: string | undefined;
}

const typeFlags = SymbolFlags.Class | SymbolFlags.Interface | SymbolFlags.TypeAlias;

/** Reads the exports of declaration files as an editor does; what libraries declare is left out. */
export function readHoverTexts(declarationFiles: readonly string[]): HoverText[] {
  const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-hover-"));
  const config = path.join(folder, "tsconfig.json");
  const compilerOptions = { module: "NodeNext", lib: ["ES2023", "ESNext.Disposable"], types: [] };
  writeFileSync(config, JSON.stringify({ compilerOptions, files: declarationFiles }));
  const api = new API();
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (!project) throw new Error(`the compiler did not open ${config}`);
    const { checker, program } = project;
    return declarationFiles.flatMap((file) => {
      const source = program.getSourceFile(file);
      const module = source && checker.getSymbolAtLocation(source);
      if (!module) throw new Error(`${file} is not a module; compile first`);
      return checker.getExportsOfModule(module).map((symbol) => readExport(checker, symbol));
    });
  } finally {
    api.close();
    rmSync(folder, { recursive: true });
  }
}

function readExport(checker: Checker, exported: DeclaredSymbol): HoverText {
  const isAlias = (exported.flags & SymbolFlags.Alias) !== 0;
  const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
  const members = new Map<string, MemberText>();
  const add = (member: DeclaredSymbol): void => {
    if (!isOurs(member) || member.name === "prototype" || member.name.includes("#")) return;
    const text = checker.getDocumentationCommentOfSymbol(member);
    const tag = checker.getJsDocTagsOfSymbol(member).find(({ name }) => name === "default");
    if (members.get(member.name)?.text !== "") {
      members.set(member.name, { text, default: tag?.text });
    }
  };
  if (symbol.flags & typeFlags) {
    for (const type of variantsOf(checker.getDeclaredTypeOfSymbol(symbol))) {
      for (const member of checker.getPropertiesOfType(type)) add(member);
    }
    for (const member of symbol.getExports().values()) add(member);
  }
  return { name: exported.name, text: checker.getDocumentationCommentOfSymbol(symbol), members };
}

/** The objects that a type stands for; a union stands for several. */
function variantsOf(type: Type): readonly Type[] {
  return type.isUnionType() ? type.getTypes().flatMap(variantsOf) : [type];
}

function isOurs(symbol: DeclaredSymbol): boolean {
  return symbol.declarations.some(({ path: file }) => !file.includes("/node_modules/"));
}
