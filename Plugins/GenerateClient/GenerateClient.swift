import Foundation
import PackagePlugin

/// `swift package generate-client`: writes a TypeScript client of the package's distributed actors.
@main
struct GenerateClient: CommandPlugin {
    private static let usage = """
        usage: swift package generate-client [--target NAME …] [--output FILE] [--check] [--schema]
                 [--runtime SPECIFIER] [--bigint] [--define NAME]
               swift package generate-client --schema --compare OLD.json [--fail-on LIST] [--accept NAME …] [--json]

        Writes a TypeScript client for the distributed actors in the package's targets (default: all but tests and macros) to FILE in
        the package (default: trebuchet-client.ts, or trebuchet-schema.json with --schema). --check writes nothing, and fails if
        FILE is outdated. --compare prints the changes since OLD.json that break old apps, new apps or stored data.
        """

    func performCommand(context: PluginContext, arguments: [String]) throws {
        var extractor = ArgumentExtractor(arguments)
        if extractor.extractFlag(named: "help") > 0 { return print(Self.usage) }
        let isSchema = extractor.extractFlag(named: "schema") > 0
        let isCheck = extractor.extractFlag(named: "check") > 0
        let isBigint = extractor.extractFlag(named: "bigint") > 0
        let targets = extractor.extractOption(named: "target")
        let outputs = extractor.extractOption(named: "output")
        let runtimes = extractor.extractOption(named: "runtime")
        let defines = extractor.extractOption(named: "define")
        let compared = extractor.extractOption(named: "compare")
        let isJSON = extractor.extractFlag(named: "json") > 0
        let comparison = ["fail-on", "accept"].flatMap { name in
            extractor.extractOption(named: name).flatMap { ["--\(name)", $0] }
        }
        if let unknown = extractor.remainingArguments.first {
            Diagnostics.error("unknown argument '\(unknown)'\n\(Self.usage)")
            return
        }
        let output = outputs.last ?? (isSchema ? "trebuchet-schema.json" : "trebuchet-client.ts")

        // The command in the first line of the file, to repeat it.
        var command = "swift package generate-client"
        for target in targets { command += " --target \(target)" }
        if let output = outputs.last { command += " --output \(output)" }
        if let runtime = runtimes.last { command += " --runtime \(runtime)" }
        if isBigint { command += " --bigint" }
        for define in defines.sorted() { command += " --define \(define)" }

        var call = [isSchema ? "schema" : "typescript", "--command", command]
        if let old = compared.last {
            call += ["--compare", old]
        } else {
            call += ["--output", output]
        }
        call += comparison + (isJSON ? ["--json"] : [])
        if isCheck { call.append("--check") }
        if isBigint { call.append("--bigint") }
        if let runtime = runtimes.last { call += ["--runtime", runtime] }
        for define in defines { call += ["--define", define] }
        call.append("--")
        call += try folders(of: targets, in: context)

        let process = Process()
        process.executableURL = try context.tool(named: "GenerateTool").url
        process.currentDirectoryURL = context.package.directoryURL
        process.arguments = call
        try process.run()
        process.waitUntilExit()
        if process.terminationStatus != 0 {
            Diagnostics.error(compared.isEmpty ? "no client was generated" : "the comparison failed")
        }
    }

    /// The folders of the targets, as seen from the package.
    private func folders(of names: [String], in context: PluginContext) throws -> [String] {
        let targets =
            names.isEmpty
            ? context.package.targets.compactMap { $0 as? SwiftSourceModuleTarget }.filter {
                $0.kind != .test && $0.kind != .macro
            }
            : try context.package.targets(named: names).compactMap { $0 as? SwiftSourceModuleTarget }
        let root = context.package.directoryURL.path
        return targets.map { target in
            let path = target.directoryURL.path
            return path.hasPrefix(root + "/") ? String(path.dropFirst(root.count + 1)) : path
        }.sorted()
    }
}
