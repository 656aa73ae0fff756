internal import ClientGenerator

/// The parsed command line.
struct GenerateOptions {
    enum Form: String { case typescript, schema, openapi }

    static let usage = """
        usage: trebuchet-generate typescript|schema|openapi [options] [PATH …]

        Reads Swift files and folders (default: Sources) and writes a client for their actors, or a description of them.

          --output FILE         output file (standard output)
          --check               write nothing; exit with 1 if FILE differs from the output
          --runtime SPECIFIER   import specifier of the client library (./trebuchet.js)
          --bigint              map Int64 and UInt64 to bigint unless a comment overrides it
          --define NAME         treat #if NAME as true; repeatable
          --actor TYPE=NAME     name of the actors of TYPE in an OpenAPI document, such as Desk=desks/{id}; repeatable
          --title TEXT          title of an OpenAPI document (Actors)
          --help                print this help and exit
        """

    var form = Form.typescript
    var paths: [String] = []
    var output: String?
    var isCheck = false
    var wantsHelp = false
    var generation = Generation.Options()

    init(_ arguments: [String]) throws(GenerateFailure) {
        var remaining = arguments[...]
        var command: String?
        var hasForm = false
        func value(of option: String) throws(GenerateFailure) -> String {
            guard let value = remaining.popFirst(), !value.isEmpty else { throw .usage("\(option) requires a value") }
            return value
        }
        while let argument = remaining.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--check": isCheck = true
            case "--bigint": generation.usesBigint = true
            case "--output": output = try value(of: argument)
            case "--runtime": generation.runtime = try value(of: argument)
            case "--define": generation.defines.insert(try value(of: argument))
            case "--title": generation.title = try value(of: argument)
            case "--actor":
                let words = try value(of: argument).split(separator: "=", maxSplits: 1)
                guard words.count == 2, Self.isName(words[1]) else {
                    throw .usage("--actor requires TYPE=NAME, such as TodoList=todos or Desk=desks/{id}")
                }
                generation.actorNames[String(words[0])] = String(words[1])
            // From a program that runs this one for the user: the command in the first line of the file.
            case "--command": command = try value(of: argument)
            case "--":
                paths += remaining
                remaining = []
            case _ where argument.hasPrefix("-"): throw .usage("unknown option \(argument)")
            case _ where !hasForm:
                guard let form = Form(rawValue: argument) else {
                    throw .usage("unknown command '\(argument)'; pass 'typescript', 'schema' or 'openapi'")
                }
                (self.form, hasForm) = (form, true)
            default: paths.append(argument)
            }
        }
        guard !wantsHelp else { return }
        guard hasForm else { throw .usage("no command given; pass 'typescript', 'schema' or 'openapi'") }
        if isCheck, output == nil { throw .usage("--check requires --output FILE, the file to compare") }
        if paths.isEmpty { paths = ["Sources"] }
        // Numbers of 64 bits need no decision there.
        if form == .openapi { generation.usesBigint = true }
        generation.command = command ?? self.command
    }

    /// Returns whether a text is a name of an actor, with percent-encoding and parameters in braces.
    private static func isName(_ text: Substring) -> Bool {
        text.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { component in
            let isParameter = component.hasPrefix("{") && component.hasSuffix("}") && component.count > 2
            let name = isParameter ? component.dropFirst().dropLast() : component
            return !name.isEmpty
                && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && !"{}?#\"<>\\^`|".utf8.contains($0) }
        }
    }

    /// The command without the parts that are specific to this machine.
    private var command: String {
        var words = ["trebuchet generate", form.rawValue]
        words += paths.map { $0.hasPrefix("/") ? "…/" + ($0.split(separator: "/").last.map(String.init) ?? "") : $0 }
        if generation.runtime != Generation.Options().runtime { words.append("--runtime \(generation.runtime)") }
        if generation.usesBigint { words.append("--bigint") }
        words += generation.defines.sorted().map { "--define \($0)" }
        return words.joined(separator: " ").filter { !$0.isNewline }
    }
}

/// An error of the tool.
enum GenerateFailure: Error {
    case usage(String)
    case failed(String)
}
