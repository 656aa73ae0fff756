import Commands
@preconcurrency import Glibc

/// `trebuchet generate`: starts `trebuchet-generate`, which reads Swift sources with libraries of a toolchain that a server
/// does not need.
enum GenerateCommand {
    static let spec = CommandSpec(
        name: "generate",
        summary: "generate a TypeScript client, a schema or an OpenAPI document from actors in Swift sources",
        subcommands: [typeScript, schema, openAPI],
        discussion: "See Docs/Reference/Generator.md for the output and its limits.",
        run: { _ in })

    private static let output = OptionSpec("--output", "FILE", "output file (standard output)")
    private static let check = OptionSpec(
        "--check", nil, "write nothing; exit with 1 if FILE differs from the output")
    private static let runtime = OptionSpec(
        "--runtime", "SPECIFIER", "import specifier of the client library (./trebuchet.js)")
    private static let bigint = OptionSpec(
        "--bigint", nil, "map Int64 and UInt64 to bigint unless a comment overrides it")
    private static let define = OptionSpec("--define", "NAME", "treat #if NAME as true; repeatable")

    private static let typeScript = CommandSpec(
        name: "generate typescript",
        summary: "write a typed client for trebuchet.js",
        operands: "[path …]",
        operandCount: 0...1_000,
        options: [output, check, runtime, bigint, define],
        discussion: """
            Reads Swift files and folders; the default is 'Sources':
              trebuchet generate typescript Sources/App --output Web/app.ts
              trebuchet generate typescript Sources/App --output Web/app.ts --check
            """,
        run: { try start("typescript", $0, [output, check, runtime, bigint, define]) })

    private static let schema = CommandSpec(
        name: "generate schema",
        summary: "write the interface as JSON, for other generators",
        operands: "[path …]",
        operandCount: 0...1_000,
        options: [output, check, bigint, define],
        discussion: """
            Reads Swift files and folders; the default is 'Sources':
              trebuchet generate schema Sources/App --output schema.json
            """,
        run: { try start("schema", $0, [output, check, bigint, define]) })

    private static let actor = OptionSpec(
        "--actor", "TYPE=NAME", "name of the actors of TYPE, such as 'Desk=desks/{id}'; repeatable")
    private static let title = OptionSpec("--title", "TEXT", "title of the document (Actors)")

    private static let openAPI = CommandSpec(
        name: "generate openapi",
        summary: "write the calls and streams over HTTP as an OpenAPI 3.1 document",
        operands: "[path …]",
        operandCount: 0...1_000,
        options: [output, check, actor, title, define],
        discussion: """
            Reads Swift files and folders; the default is 'Sources':
              trebuchet generate openapi Sources/App --actor TodoList=todos --output openapi.json
            """,
        run: { try start("openapi", $0, [output, check, actor, title, define]) })

    /// Replaces the process with `trebuchet-generate` from the directory of this program.
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
        guard count > 0 else { throw GeneratorError("cannot find the path of this program (/proc/self/exe)") }
        let own = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let path = own.prefix(through: own.lastIndex(of: "/") ?? own.startIndex) + "trebuchet-generate"
        guard access(String(path), X_OK) == 0 else {
            throw GeneratorError(
                "\(path) does not exist: generation requires the Swift toolchain; build the tool with "
                    + "'swift build --product trebuchet-generate', or use 'swift package generate-client'")
        }
        return String(path)
    }
}

/// The error of a missing or failed generator.
private struct GeneratorError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
