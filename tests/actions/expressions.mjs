// Evaluates expressions of GitHub Actions with GitHub's own library. JSON lines in, JSON lines out:
// {expression, contexts, status} becomes {value, text, asks_status} or {error}.
import { data, Evaluator, Lexer, Parser } from "@actions/expressions";
import { createInterface } from "node:readline";

const STATUS_FUNCTIONS = {
  success: (status) => status === "success",
  failure: (status) => status === "failure",
  cancelled: (status) => status === "cancelled",
  always: () => true,
};

// These four are no part of the library: they are questions to the runner.
function statusFunctions(status) {
  return Object.entries(STATUS_FUNCTIONS).map(([name, isTrue]) => ({
    name,
    minArgs: 0,
    maxArgs: 0,
    call: () => new data.BooleanData(isTrue(status)),
  }));
}

function asksStatus(tokens) {
  return tokens.some(({ lexeme }) => String(lexeme).toLowerCase() in STATUS_FUNCTIONS);
}

function evaluate({ expression, contexts, status }) {
  const functions = statusFunctions(status);
  const { tokens } = new Lexer(expression).lex();
  const tree = new Parser(tokens, Object.keys(contexts), functions).parse();
  const known = JSON.parse(JSON.stringify(contexts), data.reviver);
  const byName = new Map(functions.map((one) => [one.name, one]));
  const result = new Evaluator(tree, known, byName).evaluate();
  return {
    value: JSON.parse(JSON.stringify(result, data.replacer)),
    text: result.coerceString(),
    asks_status: asksStatus(tokens),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = evaluate(JSON.parse(line));
  } catch (error) {
    answer = { error: error.message };
  }
  console.log(JSON.stringify(answer));
}
