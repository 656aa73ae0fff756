@testable import ClientGenerator

/// The generated output of Swift source text.
func generated(_ source: String, bigint: Bool = false, defines: Set<String> = []) -> Generation {
    generated(["Sources/App/App.swift": source], bigint: bigint, defines: defines)
}

func generated(_ files: [String: String], bigint: Bool = false, defines: Set<String> = []) -> Generation {
    var options = Generation.Options()
    (options.usesBigint, options.defines) = (bigint, defines)
    return Generation(files.map { (path: $0.key, text: $0.value) }, options: options)
}

/// An actor that receives and returns a type, after the type's declaration.
func echo(_ type: String, _ declarations: String = "") -> String {
    "@Trebuchet distributed actor Echo { distributed func echo(_ value: \(type)) -> \(type) { value } }\n"
        + declarations
}

extension Generation {
    var messages: [String] { problems.map(\.description) }
}
