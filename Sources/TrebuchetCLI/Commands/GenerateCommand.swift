import Commands
@preconcurrency import Glibc

/// `trebuchet generate`: starts `trebuchet-generate`, which reads Swift sources with a toolchain's libraries; a server has
/// none of them.
enum GenerateCommand {
    static let spec = CommandSpec(
        name: "generate",
        summary: "write a TypeScript client, or a schema, of the actors in Swift sources",
        subcommands: [typeScript, schema],
        discussion: "What comes out, and what cannot, stands in Docs/Generator.md.",
        run: { _ in })

    private static let output = OptionSpec("--output", "FILE", "write there instead of printing")
    private static let check = OptionSpec(
        "--check", nil, "write nothing; exit with 1 when FILE is not what would be written")
    private static let runtime = OptionSpec(
        "--runtime", "SPECIFIER", "where the file imports the client library from (./trebuchet.js)")
    private static let bigint = OptionSpec(
        "--bigint", nil, "Int64 and UInt64 are bigint where no comment says otherwise")
    private static let define = OptionSpec("--define", "NAME", "#if NAME holds; may be given several times")

    private static let typeScript = CommandSpec(
        name: "generate typescript",
        summary: "write a typed client for trebuchet.js",
        operands: "[path …]",
        operandCount: 0...1_000,
        options: [output, check, runtime, bigint, define],
        discussion: """
            Reads Swift files and folders, 'Sources' when none is given:
              trebuchet generate typescript Sources/App --output Web/app.ts
              trebuchet generate typescript Sources/App --output Web/app.ts --check
            """,
        run: { try start("typescript", $0, [output, check, runtime, bigint, define]) })

    private static let schema = CommandSpec(
        name: "generate schema",
        summary: "write the same as JSON, for generators of your own",
        operands: "[path …]",
        operandCount: 0...1_000,
        options: [output, check, bigint, define],
        discussion: """
            Reads Swift files and folders, 'Sources' when none is given:
              trebuchet generate schema Sources/App --output schema.json
            """,
        run: { try start("schema", $0, [output, check, bigint, define]) })

    /// Becomes `trebuchet-generate`, which stands beside this program.
    private static func start(_ form: String, _ arguments: ParsedArguments, _ options: [OptionSpec]) throws {
        let path = try generator()
        var words = [path, form]
        for option in options where arguments.has(option.name) {
            guard option.value != nil else {
                words.append(option.name)
                continue
            }
            for value in arguments.all(option.name) { words += [option.name, value] }
        }
        words += ["--"] + arguments.operands
        var pointers: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        execv(path, &pointers)
        throw GeneratorError("\(path) could not be started (\(String(cString: strerror(errno))))")
    }

    private static func generator() throws -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let count = readlink("/proc/self/exe", &buffer, Int(PATH_MAX))
        guard count > 0 else { throw GeneratorError("where this program stands is not known (/proc/self/exe)") }
        let own = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let path = own.prefix(through: own.lastIndex(of: "/") ?? own.startIndex) + "trebuchet-generate"
        guard access(String(path), X_OK) == 0 else {
            throw GeneratorError(
                "there is no \(path): clients are made where the toolchain is; build it with "
                    + "'swift build --product trebuchet-generate', or use 'swift package generate-client'")
        }
        return String(path)
    }
}

private struct GeneratorError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
