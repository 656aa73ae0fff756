import Testing

struct ImportRulesTests {
    private let manifest = Manifest(
        """
        func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target { .target(name: name) }
        let package = Package(
            products: [.library(name: "Product", targets: ["Low"])],
            targets: [
                .systemLibrary(name: "CLow", pkgConfig: "x", providers: [.apt(["x-dev"])]),
                library("Low", ["CLow"]),
                library("Side"),
                // library("Gone"),
                library(
                    "High",
                    ["Low", .product(name: "Foreign", package: "foreign")]),
                .executableTarget(name: "Tool", dependencies: ["High"], swiftSettings: settings),
                test("LowTests", ["Low"], resources: [.copy("data")]),
            ])
        """)
    private let layers = ["CLow": 0, "Low": 1, "Side": 1, "High": 2, "Tool": 3]

    @Test("targets and their dependencies are read from the manifest")
    func targets() {
        let found = Dictionary(uniqueKeysWithValues: manifest.targets.map { ($0.name, $0.dependencies) })
        #expect(
            found
                == [
                    "CLow": [], "Low": ["CLow"], "Side": [], "High": ["Low"], "Tool": ["High"],
                    "LowTests": ["Low"],
                ])
    }

    @Test(
        "an import is found whatever precedes it",
        arguments: [
            "import Low", "  public import Low", "@testable import Low", "@_spi(Some) internal import Low",
            "import struct Low.Thing", "@preconcurrency public import class Low.Thing // why",
        ])
    func spellings(line: String) {
        let file = SourceText(path: "Sources/G/High/A.swift", "\n" + line)
        #expect(ImportRules.imports(of: file) == [.init(module: "Low", line: 2)])
    }

    @Test(
        "text that only looks like an import is ignored",
        arguments: ["// import Low", "let a = \"import Low\"", "important()", "/* import Low */"])
    func noImports(line: String) {
        #expect(ImportRules.imports(of: SourceText(path: "Sources/G/High/A.swift", line)).isEmpty)
    }

    @Test(
        "an import is allowed only when it is listed and lower",
        arguments: [
            ("Sources/G/High/A.swift", "import Low", true),
            ("Sources/G/High/A.swift", "import Glibc", true),
            ("Sources/G/High/A.swift", "import CLow", false),
            ("Sources/G/Low/A.swift", "import High", false),
            ("Sources/G/Low/A.swift", "import Side", false),
            ("Tests/Base/LowTests/A.swift", "@testable import Low", true),
            ("Tests/Base/LowTests/A.swift", "import High", false),
        ])
    func imports(path: String, line: String, isAllowed: Bool) {
        let findings = ImportRules.findings(
            in: SourceText(path: path, line), manifest: manifest, layers: layers)
        #expect(findings.isEmpty == isAllowed, "\(findings)")
    }

    @Test("a listed import of the same or a higher layer is found", arguments: [1, 2])
    func sameLayer(layerOfLow: Int) {
        var layers = layers
        layers["Low"] = layerOfLow
        layers["High"] = 1
        let file = SourceText(path: "Sources/G/High/A.swift", "import Low")
        #expect(ImportRules.findings(in: file, manifest: manifest, layers: layers).count == 1)
        #expect(ImportRules.findings(in: manifest, layers: layers).map(\.path) == ["Package.swift"])
    }

    @Test("a manifest that respects the layers has no findings, one with a target without a layer has")
    func manifestLayers() {
        #expect(ImportRules.findings(in: manifest, layers: layers).isEmpty)
        var fewer = layers
        fewer["Side"] = nil
        #expect(ImportRules.findings(in: manifest, layers: fewer).count == 1)
    }
}
