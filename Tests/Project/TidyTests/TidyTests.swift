import Foundation
import Testing

/// The project's rules, applied to the code base.
struct TidyTests {
    private let repository: Repository

    init() throws { repository = try Repository.current.get() }

    @Test("Package.swift and the folders name the same targets")
    func targets() {
        #expect(Set(repository.manifest.targets.map(\.name)) == repository.folders)
        #expect(repository.files.count > repository.folders.count)
    }

    @Test("in Package.swift each module is listed under its layer")
    func layersInManifest() throws {
        let text = try String(contentsOf: Repository.root.appending(path: "Package.swift"), encoding: .utf8)
        let sections = text.components(separatedBy: "        // Layer ").dropFirst()
        #expect(sections.count == 12)
        for section in sections {
            let layer = try #require(section.firstMatch(of: /^\d+/).flatMap { Int($0.output) })
            let part = section.components(separatedBy: "        // Beside the layers").first ?? ""
            let targets = Manifest(part.components(separatedBy: "\n").dropFirst().joined(separator: "\n")).targets
            #expect(!targets.isEmpty)
            for target in targets { #expect(LayerRules.layers[target.name] == layer, "\(target.name) under \(layer)") }
        }
    }

    @Test("modules import only modules listed by their target, and only of lower layers")
    func imports() {
        report(ImportRules.findings(in: repository.manifest, layers: LayerRules.layers))
        for file in repository.files {
            report(ImportRules.findings(in: file, manifest: repository.manifest, layers: LayerRules.layers))
        }
    }

    @Test("a server compiles nothing of the cluster, and its connections know no slots, nodes or relays")
    func serverWithoutCluster() {
        var compiled: Set<String> = []
        var waiting = ["Trebuchet"]
        while let name = waiting.popLast() {
            guard compiled.insert(name).inserted else { continue }
            waiting += repository.manifest.target(name)?.dependencies ?? []
        }
        #expect(compiled.count > 10 && compiled.isDisjoint(with: ["TrebuchetCluster", "TrebuchetNodes"]))
        let folders = ["Calls", "Connections", "Links", "Routing"].map { "Sources/Server/Trebuchet/Server/\($0)/" }
        let files = repository.files.filter { file in folders.contains { file.path.hasPrefix($0) } }
        #expect(files.count > 20)
        for file in files {
            let line = file.lines.first { $0.contains(/(?i)\b(?:cluster)?(?:slot|node|relay)s?\b/) }
            #expect(line == nil, "\(file.path): \(line ?? "")")
        }
    }

    @Test("fewer than 15 source files are so short that they should be merged with another")
    func shortFiles() {
        let short = TextRules.short(repository.files)
        #expect(short.count < 15, "\(short.map(\.path).joined(separator: "\n"))")
    }

    @Test("every source file is used by another")
    func deadFiles() {
        report(DeadFiles.findings(in: repository.files))
    }

    @Test("files are complete and give reasons for unchecked assertions to the compiler")
    func text() {
        for file in repository.files { report(TextRules.findings(in: file)) }
    }

    @Test("at most 40 types are Sendable without a check by the compiler; LoopBound and LoopVariable check the others")
    func uncheckedSendables() {
        let count = TextRules.uncheckedSendables(in: repository.files)
        #expect(count <= 40, "\(count) of them")
    }

    @Test("external data cannot end the process: each trap has a reason")
    func traps() {
        report(TrapRules.findings(in: repository.files))
    }

    @Test("every public declaration has a doc comment")
    func documentation() {
        for file in repository.files { report(DocumentationRules.findings(in: file)) }
    }

    private func report(_ findings: [Finding]) {
        for finding in findings { Issue.record("\(finding)") }
    }
}
