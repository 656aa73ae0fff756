internal import ClientGenerator

/// What the command line says.
struct GenerateOptions {
    enum Form: String { case typescript, schema }

    static let usage = """
        usage: trebuchet-generate typescript|schema [options] [PATH …]

        Reads Swift files and folders (default: Sources), and writes a client of the actors in them.

          --output FILE         write there instead of printing
          --check               write nothing; exit with 1 when FILE is not what would be written
          --runtime SPECIFIER   where the file imports the client library from (default: ./trebuchet.js)
          --bigint              Int64 and UInt64 are bigint where no comment says otherwise
          --define NAME         #if NAME holds; may be given several times
          --help                print this and exit
        """

    var form = Form.typescript
    var paths: [String] = []
    var output: String?
    var isCheck = false
    var wantsHelp = false
    var generation = Generation.Options()

    init(_ arguments: [String]) throws(GenerateFailure) {
        var rest = arguments[...]
        var command: String?
        var hasForm = false
        func value(of option: String) throws(GenerateFailure) -> String {
            guard let value = rest.popFirst(), !value.isEmpty else { throw .usage("\(option) needs a value") }
            return value
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--check": isCheck = true
            case "--bigint": generation.usesBigint = true
            case "--output": output = try value(of: argument)
            case "--runtime": generation.runtime = try value(of: argument)
            case "--define": generation.defines.insert(try value(of: argument))
            // Of whoever starts this for the user: what the first line of the file names.
            case "--command": command = try value(of: argument)
            case "--":
                paths += rest
                rest = []
            case _ where argument.hasPrefix("-"): throw .usage("unknown option \(argument)")
            case _ where !hasForm:
                guard let form = Form(rawValue: argument) else {
                    throw .usage("there is no '\(argument)': say 'typescript' or 'schema'")
                }
                (self.form, hasForm) = (form, true)
            default: paths.append(argument)
            }
        }
        guard !wantsHelp else { return }
        guard hasForm else { throw .usage("say 'typescript' or 'schema'") }
        if isCheck, output == nil { throw .usage("--check needs --output FILE, the file to look at") }
        if paths.isEmpty { paths = ["Sources"] }
        generation.command = command ?? self.command
    }

    /// The command without what only holds on this machine.
    private var command: String {
        var words = ["trebuchet generate", form.rawValue]
        words += paths.map { $0.hasPrefix("/") ? "…/" + ($0.split(separator: "/").last.map(String.init) ?? "") : $0 }
        if generation.runtime != Generation.Options().runtime { words.append("--runtime \(generation.runtime)") }
        if generation.usesBigint { words.append("--bigint") }
        words += generation.defines.sorted().map { "--define \($0)" }
        return words.joined(separator: " ").filter { !$0.isNewline }
    }
}

/// Why nothing came out.
enum GenerateFailure: Error {
    case usage(String)
    case failed(String)
}
