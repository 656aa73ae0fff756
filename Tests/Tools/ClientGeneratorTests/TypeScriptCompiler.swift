import Foundation
import Testing

/// Checks TypeScript files as strictly as possible, beside the types of the client library.
func compile(_ files: [(name: String, text: String)], in folder: URL) throws {
    let output = try compiled(files, in: folder)
    #expect(output == "")
}

/// The compiler's output.
func compiled(_ files: [(name: String, text: String)], in folder: URL) throws -> String {
    let types = Checkout.root.appending(path: "Web/dist/trebuchet.d.ts")
    try FileManager.default.copyItem(at: types, to: folder.appending(path: "trebuchet.d.ts"))
    for (name, text) in files { try Data(text.utf8).write(to: folder.appending(path: name)) }
    let options = [
        "--noEmit", "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noUnusedLocals",
        "--isolatedModules", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node16",
    ]
    let run = try Run("tsc", options + files.map(\.name), in: folder)
    return run.status == 0 ? "" : run.output
}
