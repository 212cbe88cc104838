const save = document.getElementById("save");
save.hidden = false;
save.onclick = () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([document.getElementById("measurements").textContent], { type: "application/json" }));
  link.download = "measurements.json";
  link.click();
};
// What is copied is selected first: where a browser refuses to copy, one key does.
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.onclick = () => {
    const selection = getSelection();
    selection.selectAllChildren(document.getElementById(button.dataset.copy));
    button.nextElementSibling.textContent = document.execCommand("copy") ? "copied" : "selected: press Ctrl+C";
  };
}
