/// A client made of Swift sources: text in, text out.
package struct Generation: Sendable {
    package struct Options: Sendable {
        /// Whether 64-bit integers are `bigint` where no comment says otherwise.
        package var usesBigint = false
        /// The flags that hold in `#if`.
        package var defines: Set<String> = []
        /// Where the generated file imports the client library from.
        package var runtime = "./trebuchet.js"
        /// The command that the first line names.
        package var command = "trebuchet generate typescript"

        package init() {}
    }

    package let model: ClientModel
    /// Errors and warnings in the order of their places.
    package let problems: [GeneratorProblem]
    private let options: Options

    /// Reads the sources.
    ///
    /// - Parameter sources: paths, as messages name them, and texts.
    package init(_ sources: [(path: String, text: String)], options: Options = Options()) {
        self.options = options
        let problems = Problems()
        let files = sources.sorted { $0.path < $1.path }.map { SourceFile(path: $0.path, text: $0.text) }
        for file in files {
            guard let (place, message) = file.misreading else { continue }
            problems.warn(place, "this is not read as Swift, so what stands here may be missing: \(message)")
        }
        let index = DeclarationIndex(files, conditions: BuildConditions(defines: options.defines))
        let builder = ModelBuilder(index, problems: problems, usesBigint: options.usesBigint)
        model = builder.build()
        if model.actors.isEmpty, !problems.hasErrors {
            problems.error(nil, "there is no actor marked '@Trebuchet' and no '@Resolvable' protocol in the sources")
        }
        self.problems = problems.all
    }

    package var hasErrors: Bool { problems.contains { $0.severity == .error } }

    package var typeScript: String {
        var writer = TypeScriptWriter(model, runtime: options.runtime, command: options.command)
        return writer.file()
    }

    package var schema: String { SchemaWriter(model: model).file() }
}
