internal import ClientGenerator
internal import Foundation

/// `trebuchet-generate`: writes clients for other languages.
@main
enum GenerateTool {
    /// Exits with 1 after an error, or if a file is outdated, and with 2 after invalid arguments.
    static func main() {
        do throws(GenerateFailure) {
            let options = try GenerateOptions(Array(CommandLine.arguments.dropFirst()))
            if options.wantsHelp { return print(GenerateOptions.usage) }
            try run(options)
        } catch {
            switch error {
            case .usage(let message):
                printMessage("trebuchet-generate: \(message)\n\n\(GenerateOptions.usage)")
                exit(2)
            case .failed(let message):
                printMessage("trebuchet-generate: \(message)")
                exit(1)
            }
        }
    }

    private static func run(_ options: GenerateOptions) throws(GenerateFailure) {
        let generation = Generation(try SwiftSources.read(options.paths), options: options.generation)
        for problem in generation.problems { printMessage("\(problem)") }
        if generation.hasErrors { throw .failed("no output because of the errors above") }
        let text: String
        switch options.form {
        case .typescript: text = generation.typeScript
        case .schema: text = generation.schema
        case .openapi:
            do throws(GeneratorDiagnostic) {
                text = try generation.openAPI()
            } catch {
                printMessage("\(error)")
                throw .failed("no output because of the error above")
            }
        }
        guard let output = options.output else { return print(text, terminator: "") }
        if options.isCheck { return try check(output, text) }
        try write(text, to: output)
    }

    private static func check(_ path: String, _ text: String) throws(GenerateFailure) {
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw .failed("'\(path)' does not exist; run the command without --check")
        }
        if let difference = TextDifference(String(decoding: bytes, as: UTF8.self), expected: text) {
            throw .failed("'\(path)' is outdated; run the command without --check: \(difference)")
        }
    }

    /// Writes the file, and creates its folder if necessary. A file with the same text is not written, so that file watchers do
    /// not run.
    private static func write(_ text: String, to path: String) throws(GenerateFailure) {
        if FileManager.default.contents(atPath: path) == Data(text.utf8) { return }
        let url = URL(filePath: path)
        do {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url, options: .atomic)
        } catch {
            throw .failed("'\(path)' cannot be written: \(error.localizedDescription)")
        }
    }

    private static func printMessage(_ line: String) { FileHandle.standardError.write(Data((line + "\n").utf8)) }
}
